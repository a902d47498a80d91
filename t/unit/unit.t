#!/usr/bin/perl

# The unit tests, but for those of models.t and emulator.t: see
# t/lib/LLM/Unit.pm.

use strict;
use warnings;

use LLM::Unit;

LLM::Unit::run_all(sub { !/$LLM::Unit::MODELS/ && !/$LLM::Unit::EMULATED/ });
