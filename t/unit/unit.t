#!/usr/bin/perl

# The unit tests, but for those of emulator.t: see t/lib/LLM/Unit.pm.

use strict;
use warnings;

use LLM::Unit;

LLM::Unit::run_all(sub { !/$LLM::Unit::EMULATED/ });
