#!/usr/bin/perl

# The unit tests that compute whole models on all backends: see
# t/lib/LLM/Unit.pm.

use strict;
use warnings;

use LLM::Unit;

LLM::Unit::run_all(sub { /$LLM::Unit::MODELS/ });
