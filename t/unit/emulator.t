#!/usr/bin/perl

# The unit tests that run kernels, and engines, on the emulated backend: see
# t/lib/LLM/Unit.pm.

use strict;
use warnings;

use LLM::Unit;

LLM::Unit::run_all(sub { /$LLM::Unit::EMULATED/ && !/$LLM::Unit::MODELS/ });
