#!/usr/bin/perl

# The page's modules that need no browser, by node: Markdown, colours of code,
# files of conversations.

use strict;
use warnings;

use LLM::Tap;
use LLM::Test;
use Test::More;

plan skip_all => 'no node' if system('node --version > /dev/null 2>&1');

tap_ok('markdown', 'node', "$LLM::Test::ROOT/t/web/markdown.mjs");

done_testing();
