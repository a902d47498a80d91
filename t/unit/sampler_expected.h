/*
 * Made by t/unit/sampler_expected.py: cases, and the probabilities of the next
 * token.
 */

#define EXPECTED_VOCAB  16

static const char *const  expected_texts[EXPECTED_VOCAB] = {
    "a", "b", "c", "d", "\n", "*", " a", " b",
    "x:", "y", "z", ":", "\"", "ab", "\n\n", "q"
};

static const expected_t  expected[] = {
    {
        .name = "plain",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.15625, 2.015625, 1.265625, 0.296875,
            -1.84375, -2.484375, 1.546875, 1.078125,
            -2.59375, 0.8125, -3.109375, 1.296875,
            0.90625, 1.25, -0.578125, 0.890625,
        },
        .want = {
            0.02367871, 0.207774079, 0.0981455257, 0.0372518397,
            0.00438012093, 0.00230816153, 0.130021697, 0.0813654986,
            0.00206902262, 0.0623850918, 0.00123546984, 0.101260999,
            0.0685166193, 0.0966239203, 0.0155288772, 0.0674543675,
        }
    },
    {
        .name = "DRY, three tokens again",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.34375, -1.828125, 0.71875, 0.625,
            0.21875, 0.328125, -0.796875, 0.015625,
            -0.421875, -1.296875, -1.140625, -0.078125,
            -2.6875, -0.234375, 1.78125, 1.953125,
        },
        .want = {
            0.0301715192, 0.00683819226, 0.0873041856, 0.0196023294,
            0.0529526653, 0.0590729669, 0.0191781845, 0.0432187058,
            0.0279040937, 0.0116321569, 0.0135993692, 0.0393510795,
            0.00289547278, 0.0336587619, 0.252623037, 0.29999728,
        }
    },
    {
        .name = "DRY, in the answer",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0, 1, 2, 3, 0, 1, 2 },
        .n_generated = 7,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.703125, 0.6875, -0.53125, 0.375,
            -0.703125, 1.21875, -0.671875, -2.09375,
            -1.71875, -1.125, 1.53125, -2.34375,
            1.21875, -0.15625, -0.703125, 0.75,
        },
        .want = {
            0.0937745145, 0.0923206754, 0.0272899395, 0.0166559601,
            0.0229804331, 0.157042759, 0.0237099103, 0.00572028208,
            0.00832296131, 0.015070936, 0.214652001, 0.00445496016,
            0.157042759, 0.0397066277, 0.0229804331, 0.0982748474,
        }
    },
    {
        .name = "DRY, from the prompt on",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3 },
        .n_prompt = 4,
        .generated = { 0, 1, 2 },
        .n_generated = 3,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            3.125, 0.328125, 0.078125, 0.28125,
            -0.34375, 1, -1.578125, -1.3125,
            -0.328125, 0.734375, -2, -1.328125,
            -2.359375, -0.265625, -0.984375, 0.40625,
        },
        .want = {
            0.642936405, 0.0392193723, 0.0305440779, 0.00922849349,
            0.0200312953, 0.0767878033, 0.00582943928, 0.00760302213,
            0.0203467423, 0.0588752511, 0.00382303961, 0.00748514819,
            0.00266891178, 0.0216589945, 0.0105557509, 0.0424062525,
        }
    },
    {
        .name = "DRY, of two the longest",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 9, 1, 2, 3, 0, 1, 2, 7, 9, 1, 2, 10, 0, 1, 2 },
        .n_prompt = 15,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.125, -1.25, 1.859375, 0.78125,
            -0.6875, -1.390625, -0.40625, 1.765625,
            -1.828125, -1.484375, -1.125, 0,
            1.46875, 0.59375, 0.203125, 0.375,
        },
        .want = {
            0.0404861922, 0.0131439422, 0.294516781, 0.0450246889,
            0.0230683369, 0.0114196549, 0.0305605812, 0.066127585,
            0.00737308334, 0.0103977141, 0.00669232255, 0.045876866,
            0.199280022, 0.0830722725, 0.0562095112, 0.0667504462,
        }
    },
    {
        .name = "DRY, one token often",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.2, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 0, 0, 0, 0, 0, 0, 0, 0 },
        .n_prompt = 9,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.21875, 0.375, -0.09375, -0.28125,
            1.984375, -0.546875, -0.203125, -1.59375,
            -1.796875, 1.59375, -1.125, -1.03125,
            -3.015625, -0.203125, -1.703125, 0.03125,
        },
        .want = {
            0.00136491531, 0.0732317873, 0.0458272815, 0.0379921508,
            0.366135901, 0.0291295924, 0.0410793096, 0.0102254487,
            0.00834576796, 0.247739943, 0.0163402204, 0.0179462213,
            0.0024670043, 0.0410793096, 0.00916603294, 0.0519291131,
        }
    },
    {
        .name = "DRY, allowed length 1",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 1,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.8125, -0.1875, 0.375, 0.515625,
            -0.25, -0.796875, 0.078125, -0.15625,
            1.953125, 3.25, 2.640625, -1.59375,
            0.96875, -3.671875, -0.484375, -0.328125,
        },
        .want = {
            0.0382533417, 0.014072618, 0.0246982137, 0.00245310831,
            0.0132200011, 0.00765114967, 0.0183541539, 0.0145193308,
            0.119684118, 0.437786312, 0.23802029, 0.00344864334,
            0.0447226874, 0.000431648327, 0.0104578817, 0.0122265024,
        }
    },
    {
        .name = "DRY, allowed length 0",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 0,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.296875, 0.484375, -0.703125, -2.53125,
            -0.84375, -1.125, -2.375, -0.234375,
            -1.1875, -0.84375, 0.453125, -0,
            -0.109375, -0.28125, 0.203125, -1.34375,
        },
        .want = {
            0.153880203, 0.0682839264, 0.0208254209, 0.000102340417,
            0.0402676896, 0.0303956468, 0.00870849861, 0.074063616,
            0.0285540676, 0.0402676896, 0.147293088, 0.0936251833,
            0.0839250719, 0.0706719961, 0.114711973, 0.0244235883,
        }
    },
    {
        .name = "DRY, allowed length 3",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 3,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.171875, -1.109375, -0.484375, 0.703125,
            -1.28125, -1.765625, -0.765625, 0.515625,
            -0.609375, -1.65625, 2.28125, 1.015625,
            -0.671875, 1.640625, -3.390625, -1.9375,
        },
        .want = {
            0.0344896994, 0.0135063603, 0.0252332031, 0.0371759003,
            0.0113734957, 0.00700700743, 0.019047021, 0.0685909574,
            0.0222682236, 0.00781688166, 0.400929544, 0.11308737,
            0.0209190601, 0.211275023, 0.00137976157, 0.00590049184,
        }
    },
    {
        .name = "DRY, allowed length 4",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 4,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.4375, 1.171875, 0.75, -1.015625,
            1.890625, 1.09375, 1.5, 0.5625,
            0.765625, -0.59375, -0.359375, -0.421875,
            0.890625, -1.90625, -0.078125, 0.59375,
        },
        .want = {
            0.0204474542, 0.102230839, 0.067044621, 0.0114699822,
            0.209764062, 0.0945480701, 0.141933464, 0.0555819431,
            0.0681004202, 0.0174896344, 0.0221089694, 0.0207694547,
            0.0771678858, 0.00470727123, 0.0292896258, 0.0573463033,
        }
    },
    {
        .name = "DRY, base 1",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.0, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            2.171875, -0.1875, 0.71875, 0.984375,
            0.03125, -0.96875, -0.734375, 1.859375,
            0.25, -1.546875, -0.546875, -1.6875,
            -0.34375, -0.34375, -0.28125, 0.375,
        },
        .want = {
            0.324297469, 0.0306393831, 0.0758332014, 0.0444409442,
            0.0381313283, 0.0140277318, 0.0177327145, 0.237261097,
            0.0474552048, 0.00786884436, 0.0213897366, 0.00683657045,
            0.0262072531, 0.0262072531, 0.0278974758, 0.053773792,
        }
    },
    {
        .name = "DRY, base below 1 is off",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 0.5, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.234375, -0.03125, 1.25, -0.09375,
            -3.0625, 1.09375, -2.09375, -1.4375,
            -1.34375, 1.703125, 0.453125, 0.125,
            -1.34375, -0.09375, 1.765625, 0.890625,
        },
        .want = {
            0.0288019453, 0.035288881, 0.127080142, 0.0331508358,
            0.00170287488, 0.108697406, 0.00448647775, 0.00864791221,
            0.00949787347, 0.199925126, 0.0572795077, 0.0412568817,
            0.00949787347, 0.0331508358, 0.212819189, 0.0887162371,
        }
    },
    {
        .name = "DRY, a window that ends in the repetition",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = 5, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.078125, 0.484375, -0.09375, -0.890625,
            -0.109375, -1.296875, 0.71875, -0.03125,
            -1.53125, 3.3125, -0.125, 0.828125,
            0.234375, -0.328125, 1.484375, 0.3125,
        },
        .want = {
            0.0198190272, 0.034783476, 0.0195117617, 0.00879464001,
            0.0192092598, 0.00585849325, 0.0439704337, 0.0207701622,
            0.00463444961, 0.588317899, 0.0189114479, 0.0490525634,
            0.0270893983, 0.0154350739, 0.0945512907, 0.0292906235,
        }
    },
    {
        .name = "DRY, a window of all",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = 7, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.953125, 1.96875, -1.921875, 0.25,
            2.390625, 0.75, -0.90625, 0.171875,
            -0.328125, -0.140625, 0.890625, 0.421875,
            1.28125, 0.03125, -0.4375, 1.171875,
        },
        .want = {
            0.0105061014, 0.195162232, 0.0039876663, 0.00862859056,
            0.297586867, 0.0576898457, 0.0110102997, 0.0323610705,
            0.0196279815, 0.023675865, 0.0664006054, 0.0415524371,
            0.0981337332, 0.0281157853, 0.0175944089, 0.08796651,
        }
    },
    {
        .name = "DRY, window 0 is off",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = 0, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 3, 0, 1, 2 },
        .n_prompt = 7,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.453125, 1.296875, -2.75, 0.75,
            -2.03125, -0.8125, 0.359375, 0.046875,
            1.640625, -0.90625, 0.59375, -1.0625,
            -1.8125, -0.59375, -1.4375, 0.625,
        },
        .want = {
            0.0118892769, 0.185979583, 0.00325034745, 0.107636725,
            0.00666927992, 0.0225618832, 0.072830651, 0.0532840425,
            0.262273249, 0.0205428284, 0.0920665695, 0.0175712123,
            0.00830005297, 0.0280787173, 0.0120765058, 0.0949890761,
        }
    },
    {
        .name = "DRY, a breaker inside",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 4, 1, 2, 3, 0, 4, 1, 2 },
        .n_prompt = 9,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "\n", ":", "\"", "*" }, .n_breakers = 4,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.515625, 0.890625, -0.84375, -1.140625,
            1.140625, -1.359375, 0.703125, -0.453125,
            -0.203125, -2.0625, 1.234375, 0.9375,
            0.625, -0.859375, -1.1875, 1.359375,
        },
        .want = {
            0.0258807305, 0.105609539, 0.0186411909, 0.00622453473,
            0.135605332, 0.0111311635, 0.0875533829, 0.0275498943,
            0.0353747644, 0.00551032551, 0.148933321, 0.110677846,
            0.0809736422, 0.018352186, 0.0132185837, 0.168763563,
        }
    },
    {
        .name = "DRY, a breaker in a longer token",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 1,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 8, 1, 2, 3, 0, 8, 1, 2 },
        .n_prompt = 9,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "\n", ":", "\"", "*" }, .n_breakers = 4,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.578125, 1.59375, -0.046875, -0.875,
            1.1875, 0.078125, -0.625, -1.515625,
            -0.46875, -0.265625, -2.484375, -5.03125,
            0.890625, 1.03125, 0.171875, 2,
        },
        .want = {
            0.0208102588, 0.18260422, 0.0353994427, 0.00381359028,
            0.121640634, 0.0401128237, 0.0198572877, 0.00814941444,
            0.0232155213, 0.0284442513, 0.00309316883, 0.000242275705,
            0.0903956437, 0.104044748, 0.0440553183, 0.274121401,
        }
    },
    {
        .name = "DRY, a breaker last",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 0,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 2, 11, 3, 0, 1, 2, 11 },
        .n_prompt = 9,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "\n", ":", "\"", "*" }, .n_breakers = 4,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.5625, 1.640625, -0.59375, 1.34375,
            -0.640625, 1.28125, -0.234375, 1.203125,
            3.5625, 1.203125, -1.96875, -0.515625,
            1.828125, 0.515625, -1.625, -0.15625,
        },
        .want = {
            0.0128030787, 0.037630341, 0.00402866747, 0.0279644949,
            0.00855538293, 0.0584654317, 0.0128431509, 0.0540716851,
            0.572312784, 0.0540716851, 0.0022669508, 0.00969451894,
            0.101019207, 0.0271889507, 0.00319691304, 0.0138867572,
        }
    },
    {
        .name = "DRY, the breaker itself",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 4, 3, 0, 1 },
        .n_prompt = 6,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "\n", ":", "\"", "*" }, .n_breakers = 4,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.546875, 0.0625, 0.34375, 0.125,
            -2.796875, -0.515625, -0.140625, -0.0625,
            -2.578125, -1, -0.328125, 1.234375,
            0.546875, 1.09375, -2.328125, 2.171875,
        },
        .want = {
            0.00869991025, 0.0434968147, 0.0576239172, 0.0463021182,
            0.00249256602, 0.0243995017, 0.0355010655, 0.0383858042,
            0.00310204853, 0.0150320969, 0.029431417, 0.140409438,
            0.0706022992, 0.121989834, 0.00398310916, 0.35854806,
        }
    },
    {
        .name = "DRY, a breaker of two tokens",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 1,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 2, 3, 1, 2, 7, 0, 2, 3, 1, 2 },
        .n_prompt = 11,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "cd" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.078125, -1.171875, -1, 2.0625,
            -0.0625, -1.40625, -0.375, 1.65625,
            0.34375, -3.4375, -0.484375, 1.125,
            0.5625, 1.71875, -1.0625, 0.296875,
        },
        .want = {
            0.0155510163, 0.0141593614, 0.0168146577, 0.161539709,
            0.0429377328, 0.0112009768, 0.0314139164, 0.0590568767,
            0.0644571712, 0.00146924842, 0.0281592526, 0.140787406,
            0.0802182457, 0.254933057, 0.0157959091, 0.0615054624,
        }
    },
    {
        .name = "DRY, a breaker that ends in a token",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 1,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 13, 9, 2, 1, 13, 9 },
        .n_prompt = 8,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "ba" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.21875, -0.609375, -0.328125, 1.265625,
            0.78125, -1.671875, 0.546875, -0.390625,
            1.671875, 1.203125, 0.296875, -0.1875,
            -1.65625, 1.46875, -0.125, -0.15625,
        },
        .want = {
            0.029658428, 0.0200678962, 0.0119456994, 0.130859121,
            0.0806199659, 0.00693527935, 0.0637756422, 0.0249749003,
            0.196442808, 0.122930768, 0.0496685201, 0.0305998876,
            0.00704449411, 0.160331947, 0.0325734107, 0.0315712323,
        }
    },
    {
        .name = "DRY, half a breaker",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 2, 3, 1, 7, 0, 2, 3 },
        .n_prompt = 8,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { "cdx" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.515625, -0.109375, -2.125, 0.5,
            -0.796875, 1.390625, 0.703125, 0.953125,
            2.53125, -0.109375, -0.625, 0.265625,
            0.625, 0.25, -0.21875, -2.09375,
        },
        .want = {
            0.0521222069, 0.0068798104, 0.00371718289, 0.051314127,
            0.0140285017, 0.125034674, 0.0628713826, 0.0807284533,
            0.391198887, 0.0278990069, 0.0166592579, 0.0405928156,
            0.0581465236, 0.0399634823, 0.0250085082, 0.00383517894,
        }
    },
    {
        .name = "DRY at random, 0",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.5, .dry_allowed_length = 0,
            .dry_penalty_last_n = 12, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 3, 2, 1, 2, 2, 0, 1, 1, 2, 3, 0, 1, 2, 2, 2, 1, 1, 1 },
        .n_generated = 18,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            2.28125, -0.65625, 1.578125, -0.34375,
            -2.28125, -0.125, -0.703125, -0.34375,
            -0.796875, 1.265625, 0.484375, -0.984375,
            0.234375, -0.53125, 0.125, 0.9375,
        },
        .want = {
            0.227612693, 0.00443774102, 0.0414513507, 0.0164882082,
            0.0052864422, 0.045667892, 0.0256173657, 0.0366951821,
            0.0233248769, 0.183464368, 0.0839961083, 0.0193370021,
            0.0654162349, 0.0304213744, 0.058638734, 0.132144427,
        }
    },
    {
        .name = "DRY at random, 1",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 2.0, .dry_allowed_length = 3,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 2 },
        .n_prompt = 1,
        .generated = { 0, 2, 0, 3, 1, 3, 2, 3, 3, 2, 0, 3, 1, 2, 3, 3, 1 },
        .n_generated = 17,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.484375, -0.859375, -0.453125, 1.296875,
            -0.46875, -3.03125, 0.34375, 1.578125,
            0.015625, 1.328125, -0.9375, -0.328125,
            0.65625, 3.03125, 0.890625, 0.609375,
        },
        .want = {
            0.00507012174, 0.00947223445, 0.0142195081, 0.0818276192,
            0.013999055, 0.00107949121, 0.0315473575, 0.108403983,
            0.0227227092, 0.0844251066, 0.00876038479, 0.0161128136,
            0.0431201252, 0.463585034, 0.0545089457, 0.0411455109,
        }
    },
    {
        .name = "DRY at random, 2",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.5, .dry_allowed_length = 3,
            .dry_penalty_last_n = 6, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 0 },
        .n_prompt = 2,
        .generated = { 1, 0, 1, 2, 3, 3, 1, 3, 1, 2, 2, 3, 0, 1, 1, 2 },
        .n_generated = 16,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.5, 0.484375, 1.265625, 1.890625,
            -1.40625, -0.390625, -0.078125, -0.75,
            -0.59375, 0.484375, 0, -0.25,
            -0.875, -0.640625, -0.859375, 0.53125,
        },
        .want = {
            0.027899374, 0.0746625966, 0.163078104, 0.304670008,
            0.0112723661, 0.0311240008, 0.0425414652, 0.0217280543,
            0.0254026691, 0.0746625966, 0.0459982914, 0.0358235053,
            0.0191749406, 0.0242393962, 0.019476902, 0.0782457294,
        }
    },
    {
        .name = "DRY at random, 3",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 2.0, .dry_allowed_length = 1,
            .dry_penalty_last_n = 12, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 2, 2, 2 },
        .n_prompt = 3,
        .generated = { 1, 2, 3, 2, 2, 0, 1, 0, 0, 0, 0, 1, 2, 1, 2 },
        .n_generated = 15,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.953125, -0.046875, -1.1875, 1.453125,
            0.546875, -0.859375, 0.21875, -1.609375,
            2.1875, -3.75, 0.0625, -0.03125,
            1.015625, -0.8125, 0.125, -0.296875,
        },
        .want = {
            0.0458509315, 0.00757910801, 0.00539121359, 0.16824067,
            0.0679753756, 0.0166580822, 0.0489608263, 0.00786872086,
            0.350643668, 0.000925214678, 0.041878414, 0.0381307299,
            0.108624341, 0.0174575202, 0.0445793397, 0.0292358447,
        }
    },
    {
        .name = "DRY at random, 4",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.0, .dry_allowed_length = 1,
            .dry_penalty_last_n = 6, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 1, 0, 3, 2 },
        .n_prompt = 4,
        .generated = { 0, 2, 2, 0, 2, 0, 0, 0, 0, 1, 1, 3, 0, 2 },
        .n_generated = 14,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.234375, -0.703125, -0.078125, 0.84375,
            0.25, -0.859375, 0.796875, -0.4375,
            0.59375, 0.671875, -3.046875, 0.0625,
            -0.265625, 0.78125, 1.109375, -0.171875,
        },
        .want = {
            0.0380066436, 0.0237839498, 0.0444342681, 0.111707738,
            0.0616908718, 0.0203434903, 0.106592268, 0.0310201184,
            0.0869980735, 0.0940673462, 0.00228247636, 0.051143529,
            0.0368373021, 0.104939708, 0.145694356, 0.0404578615,
        }
    },
    {
        .name = "DRY at random, 5",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 2.0, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 3, 1 },
        .n_prompt = 5,
        .generated = { 1, 3, 3, 0, 3, 2, 2, 3, 3, 1, 2, 2, 1 },
        .n_generated = 13,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            2.625, 0.25, -3.65625, 0.3125,
            -1.046875, -0.671875, 0.765625, 0.90625,
            0.703125, -0.15625, 0.671875, -2.375,
            0.078125, 0.65625, -0.046875, 3.5,
        },
        .want = {
            0.215786837, 0.0200713024, 0.000403750185, 0.0213657902,
            0.00548718874, 0.0079838125, 0.0336131061, 0.038688448,
            0.031576591, 0.0133703699, 0.0306050814, 0.00145396027,
            0.0169017312, 0.0301305936, 0.0149157254, 0.517645712,
        }
    },
    {
        .name = "DRY at random, 6",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.5, .dry_allowed_length = 0,
            .dry_penalty_last_n = 6, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 1, 3, 1, 3, 3, 1 },
        .n_prompt = 6,
        .generated = { 0, 0, 3, 3, 1, 3, 1, 3, 1, 1, 0, 0 },
        .n_generated = 12,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.359375, -0.5, 0.46875, -0.328125,
            0.046875, -2.453125, -3.03125, -0.046875,
            -1.875, 1.0625, 1.0625, 1,
            0.328125, 0.015625, -2.453125, 1.65625,
        },
        .want = {
            0.0535710353, 0.0124489158, 0.0729944591, 0.0147834533,
            0.047870935, 0.00392948563, 0.00220424167, 0.0435869823,
            0.00700506553, 0.13217589, 0.13217589, 0.124167758,
            0.0634186851, 0.0463981012, 0.00392948563, 0.239339617,
        }
    },
    {
        .name = "DRY at random, 7",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.0, .dry_allowed_length = 3,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 1, 1, 3, 2, 0, 2, 2 },
        .n_prompt = 7,
        .generated = { 1, 1, 0, 1, 3, 0, 2, 3, 0, 1, 0 },
        .n_generated = 11,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.015625, -1.84375, 0.5625, -1.296875,
            1.453125, -1.171875, 0.421875, 2.734375,
            -0.8125, -2.15625, -1.65625, -0.859375,
            -0.0625, -0.046875, 1.359375, -0.9375,
        },
        .want = {
            0.0115295731, 0.00503689746, 0.0558707121, 0.00870297838,
            0.136137487, 0.00986176649, 0.0485413159, 0.490249924,
            0.0141263283, 0.0036850729, 0.00607565808, 0.0134794366,
            0.0299054372, 0.0303763793, 0.123954593, 0.0124664409,
        }
    },
    {
        .name = "DRY at random, 8",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.0, .dry_allowed_length = 1,
            .dry_penalty_last_n = 6, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 3, 0, 1, 2, 2, 0, 2, 2 },
        .n_prompt = 8,
        .generated = { 0, 3, 3, 1, 0, 1, 3, 3, 2, 3 },
        .n_generated = 10,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.734375, -0.078125, 0.703125, -1.578125,
            -0.78125, 1.59375, -1.84375, 0.859375,
            -0.796875, -0.296875, 1.328125, 1.8125,
            -1.28125, -0.53125, -2.65625, -0.875,
        },
        .want = {
            0.202793307, 0.0331050974, 0.0324901598, 0.00331907878,
            0.0163882116, 0.176189879, 0.00566361437, 0.0845368276,
            0.0161341359, 0.026600693, 0.135089466, 0.219271847,
            0.00993995277, 0.0210428802, 0.00251321364, 0.0149216364,
        }
    },
    {
        .name = "DRY at random, 9",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.5, .dry_allowed_length = 3,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 1, 3, 3, 1, 3, 1, 1, 2, 1 },
        .n_prompt = 9,
        .generated = { 1, 3, 0, 3, 0, 1, 1, 1, 1 },
        .n_generated = 9,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.390625, -1.609375, -0.0625, -0.15625,
            0.546875, 0.15625, 1.640625, 1.015625,
            -0.609375, -1.578125, 2.640625, 1.5625,
            0.46875, 1.125, -1, -2.09375,
        },
        .want = {
            0.00660929544, 0.00238625945, 0.0249432204, 0.0227110606,
            0.0458776035, 0.0310423393, 0.136965224, 0.0733122017,
            0.0144360285, 0.00547929837, 0.372310081, 0.126672125,
            0.0424298472, 0.081785671, 0.00976790545, 0.00327183849,
        }
    },
    {
        .name = "DRY at random, 10",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.0, .dry_allowed_length = 3,
            .dry_penalty_last_n = 12, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 2, 3, 3, 1, 0, 0, 2, 0, 3, 3 },
        .n_prompt = 10,
        .generated = { 0, 0, 0, 1, 2, 2, 3, 2 },
        .n_generated = 8,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -2.359375, 0.734375, 0.125, 0.125,
            2.65625, 0.640625, -0.578125, -0.15625,
            -1.625, 0.0625, -0.328125, 0.921875,
            -0.015625, 1.484375, -1.5625, 0.65625,
        },
        .want = {
            0.00277625083, 0.0612431125, 0.0332973027, 0.0332973027,
            0.418520718, 0.0557624885, 0.0164833601, 0.0251341227,
            0.00578620359, 0.0312799211, 0.0211650533, 0.0738732948,
            0.0289291979, 0.12965167, 0.00615938166, 0.0566406199,
        }
    },
    {
        .name = "DRY at random, 11",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.5, .dry_allowed_length = 3,
            .dry_penalty_last_n = 6, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 3, 2, 1, 0, 1, 1, 2, 1, 0, 1, 3 },
        .n_prompt = 11,
        .generated = { 3, 1, 1, 3, 3, 0, 3 },
        .n_generated = 7,
        .breakers = { "\n" }, .n_breakers = 1,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            4.84375, -1.0625, 0.8125, 1.03125,
            -0.796875, 0.078125, -1.65625, 0.328125,
            -1.390625, 1.25, -0.609375, 0.84375,
            0.078125, -0.34375, 0.25, 0.421875,
        },
        .want = {
            0.865530876, 0.00235630108, 0.0153650131, 0.0191220678,
            0.00307319596, 0.00737221386, 0.00130127304, 0.00946610997,
            0.00169718, 0.0237977978, 0.00370698193, 0.015852751,
            0.00737221386, 0.00483481588, 0.00875472057, 0.0103964879,
        }
    },
    {
        .name = "XTC, always",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            1.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.375, -0.5625, 0.078125, -0.015625,
            1.015625, 1.8125, 0.34375, 0.375,
            0.59375, 0.5625, -1.359375, 1.34375,
            0.59375, -1.21875, 0.90625, -0.625,
        },
        .want = {
            0.014486075, 0.032644874, 0.0619490854, 0.0564052841,
            0.158192531, 0, 0.080796839, 0.083361606,
            0.103745195, 0.100553291, 0.0147141975, 0,
            0.103745195, 0.0169359375, 0.141802869, 0.030667021,
        }
    },
    {
        .name = "XTC, sometimes",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.4, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.4375, 1.734375, 0.75, 1.453125,
            2.421875, 0.890625, -1.234375, -0.484375,
            -1.734375, 0.78125, 1.953125, 0.1875,
            -0.109375, -1.171875, 1.671875, 1.578125,
        },
        .want = {
            0.106073274, 0.0642922937, 0.0533369919, 0.107743685,
            0.127860493, 0.0613905014, 0.00733204981, 0.0155219496,
            0.00444711301, 0.0550300898, 0.0800130523, 0.0303905019,
            0.0225843034, 0.00780492639, 0.134089183, 0.12208959,
        }
    },
    {
        .name = "XTC, threshold 0",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            1.0, .xtc_threshold = 0.0, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.953125, -0.265625, -1.1875, 0.28125,
            -0.578125, -0.03125, 3.453125, 0.046875,
            -0.875, 1.796875, -0.546875, -1.84375,
            0.34375, 0.78125, 0.703125, 0.703125,
        },
        .want = {
            0, 0, 0, 0,
            0, 0, 0, 0,
            0, 0, 0, 1,
            0, 0, 0, 0,
        }
    },
    {
        .name = "XTC, threshold above 0.5",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            1.0, .xtc_threshold = 0.6, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.65625, -0.328125, 0.765625, -0.734375,
            0.234375, 0.640625, 2.734375, 1.578125,
            -1.46875, -0.09375, 0.46875, -0.015625,
            1.65625, 0.03125, -1.125, 0.515625,
        },
        .want = {
            0.119104796, 0.0163729198, 0.0488805096, 0.0109067159,
            0.0287353692, 0.0431368983, 0.350068462, 0.110153929,
            0.0052330995, 0.02069731, 0.0363249103, 0.022379128,
            0.119104796, 0.0234531248, 0.00737985316, 0.0380681792,
        }
    },
    {
        .name = "XTC, threshold that one reaches",
        .p = {
            .temperature = 0.5, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            1.0, .xtc_threshold = 0.5, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.421875, -0.671875, -0.15625, -0.953125,
            0.484375, -0.203125, 0.40625, -0.75,
            -3.078125, 1.75, -2.578125, -0.703125,
            -0.515625, -0.875, 1.046875, -1.171875,
        },
        .want = {
            0.00869604336, 0.00527441692, 0.0147924681, 0.00300527217,
            0.0532697238, 0.0134686954, 0.0455640093, 0.00451144786,
            4.28679052e-05, 0.669558229, 0.000116527048, 0.00495485615,
            0.00720927316, 0.00351351913, 0.164082301, 0.00194034955,
        }
    },
    {
        .name = "XTC behind top-p and temperature",
        .p = {
            .temperature = 1.4, .top_k = 0, .top_p = 0.85, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.7, .xtc_threshold = 0.08, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.203125, -0.21875, 0.375, -0.640625,
            0.03125, 0.46875, -0.359375, 1.125,
            0.296875, -1.515625, 1.359375, -0.421875,
            -1.203125, 1.078125, -0.78125, 1.53125,
        },
        .want = {
            0, 0.0964450971, 0.14738984, 0,
            0.115300911, 0.15759766, 0.0872281828, 0.0386155163,
            0.139390239, 0, 0.0456527974, 0.0834197105,
            0, 0.0373439915, 0, 0.0516160537,
        }
    },
    {
        .name = "top-n-sigma",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = 1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -3.140625, -0.640625, -1.46875, 2.4375,
            2.59375, -0.09375, 0.90625, -1.09375,
            -2.015625, -0.296875, 1.671875, -0.03125,
            -0.734375, 1.40625, 1.328125, -0.5625,
        },
        .want = {
            0, 0, 0, 0.301160587,
            0.352092398, 0, 0, 0,
            0, 0, 0.14005268, 0,
            0, 0.107382114, 0.099312221, 0,
        }
    },
    {
        .name = "top-n-sigma, hot",
        .p = {
            .temperature = 2.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = 1.6, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.046875, -0.265625, -1.640625, 1.9375,
            -1.703125, -0.875, -2.328125, 0.15625,
            -0.28125, 1.1875, -0.953125, 1.28125,
            0.546875, 2.5625, -0.625, 1.34375,
        },
        .want = {
            0, 0, 0, 0.199343935,
            0, 0, 0, 0,
            0, 0.137006949, 0, 0.14358205,
            0.0994563792, 0.272470853, 0, 0.148139833,
        }
    },
    {
        .name = "top-n-sigma and min-p",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.2,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = 1.8, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.703125, 0.453125, -1.4375, 1.65625,
            -1.109375, 2.34375, 1.546875, -0.765625,
            1.390625, 0.765625, 1.21875, -1.75,
            0.765625, -1.421875, -1.46875, -1.515625,
        },
        .want = {
            0, 0, 0, 0.163443957,
            0, 0.32504712, 0.146510216, 0,
            0.125316828, 0.0670772646, 0.10552735, 0,
            0.0670772646, 0, 0, 0,
        }
    },
    {
        .name = "top-n-sigma without what is not allowed",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = 1.2, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x232d,
        .logits = {
            -0.921875, 1.578125, 2.109375, 0.53125,
            2.921875, -1.125, 1.953125, -0.921875,
            1.625, 0.75, 0.5, -0.125,
            0.09375, 1.734375, 0.71875, -1.9375,
        },
        .want = {
            0, 0, 0.390595607, 0,
            0, 0, 0, 0,
            0.240638972, 0.100313248, 0, 0,
            0, 0.268452173, 0, 0,
        }
    },
    {
        .name = "top-n-sigma and top-k",
        .p = {
            .temperature = 1.0, .top_k = 3, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = 1.2, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -2.4375, -1.15625, 1.703125, -2.59375,
            -0.234375, -1.921875, 2.375, 0.53125,
            0.59375, -0.453125, -0.40625, -2.65625,
            0.21875, -1.046875, 0.25, -0.203125,
        },
        .want = {
            0, 0, 0.338077124, 0,
            0, 0, 0.661922876, 0,
            0, 0, 0, 0,
            0, 0, 0, 0,
        }
    },
    {
        .name = "dynamic temperature",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.8,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            2.546875, 0.578125, -0.90625, 1.28125,
            -0.8125, 0.5, 2.328125, 1.609375,
            -0.453125, -0.265625, -0.984375, -0.53125,
            -1.921875, 0.5625, -1.015625, 1.59375,
        },
        .want = {
            0.2083989, 0.0522175615, 0.0183917149, 0.0856027268,
            0.0196446832, 0.0494270001, 0.178693553, 0.107812075,
            0.0252909864, 0.0288543551, 0.0174088423, 0.0239394095,
            0.00900620598, 0.0516471213, 0.0170305612, 0.106634304,
        }
    },
    {
        .name = "dynamic temperature, to 0",
        .p = {
            .temperature = 0.5, .top_k = 6, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 2.0,
            .dynatemp_exponent = 2.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -2.359375, -0.609375, -0.296875, -1.71875,
            -0.984375, -0.265625, 0.78125, 0.796875,
            0.5, 2.109375, 0.484375, -1.234375,
            0.21875, -0.21875, -0.8125, 0.140625,
        },
        .want = {
            0, 0, 0, 0,
            0, 0, 0.152925615, 0.154264048,
            0.130725241, 0.32074634, 0.129591037, 0,
            0.111747719, 0, 0, 0,
        }
    },
    {
        .name = "dynamic temperature, exponent 0",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.5,
            .dynatemp_exponent = 0.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.46875, -1.0625, -0.71875, -0.015625,
            -0.546875, 0.09375, 0.5625, -0.25,
            0.828125, 0.453125, -0.484375, -0.078125,
            -1.375, -0.296875, 1.15625, 0.890625,
        },
        .want = {
            0.0434221173, 0.0292282467, 0.0367560288, 0.0587359667,
            0.0412184344, 0.0631788079, 0.0863551917, 0.0502395347,
            0.103084832, 0.0802825478, 0.0429721512, 0.05633892,
            0.0237314758, 0.0486938267, 0.128291146, 0.107470772,
        }
    },
    {
        .name = "dynamic temperature of one token",
        .p = {
            .temperature = 0.4, .top_k = 0, .top_p = 0.01, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.5,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -1.046875, -0.390625, 1.390625, 0.5,
            -0.265625, -0.890625, -1.1875, -1.390625,
            0.421875, 0.4375, 0.703125, 2.4375,
            -1.484375, -2.671875, 1.578125, 0.734375,
        },
        .want = {
            0, 0, 0, 0,
            0, 0, 0, 0,
            0, 0, 0, 1,
            0, 0, 0, 0,
        }
    },
    {
        .name = "dynamic temperature behind XTC",
        .p = {
            .temperature = 1.0, .top_k = 8, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            1.0, .xtc_threshold = 0.1, .dynatemp_range = 0.5,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.953125, 0.375, -1.21875, -1.109375,
            1.4375, 0.0625, 0.75, 2.0625,
            0.15625, -0.375, -0.296875, -0.171875,
            -1.59375, 1.71875, 0.28125, 0.578125,
        },
        .want = {
            0, 0.136242293, 0, 0,
            0.285331248, 0, 0.17685578, 0,
            0.117008123, 0, 0, 0,
            0, 0, 0.127639506, 0.15692305,
        }
    },
    {
        .name = "penalties of the last -1",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            1.125, -0.75, 0.421875, -1.484375,
            1, -0.59375, 1.09375, -0.5,
            0.171875, -0.515625, -0.40625, -0.640625,
            0.03125, 1.734375, 0.71875, 1.0625,
        },
        .want = {
            0.0420379334, 0.0146582154, 0.0566187524, 0.00174521186,
            0.113863568, 0.0081968584, 0.125054665, 0.0254063962,
            0.0497433089, 0.0250125065, 0.0279034674, 0.0220734595,
            0.0432177357, 0.237312054, 0.0859487303, 0.121207137,
        }
    },
    {
        .name = "penalties of the last 0",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = 0, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.171875, -0.15625, 2.234375, -1.71875,
            0.484375, -0.9375, -1.421875, -0.234375,
            0.328125, -1.890625, -0.28125, 0.421875,
            -1.015625, -2.546875, 3.671875, -0.796875,
        },
        .want = {
            0.014443922, 0.0146713807, 0.160216128, 0.00307528846,
            0.0278413884, 0.00671704755, 0.00413825295, 0.013568809,
            0.0238140015, 0.00258965252, 0.012947448, 0.026154564,
            0.00621225345, 0.00134349403, 0.674535095, 0.00773127434,
        }
    },
    {
        .name = "penalties of the last 1",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = 1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.953125, 1.109375, 1.875, -0.34375,
            -0.421875, 1.953125, -1.03125, -0.640625,
            1.953125, -0.28125, -0.734375, 3.484375,
            1.421875, -1.40625, 0.453125, 1.65625,
        },
        .want = {
            0.0379772294, 0.0443998794, 0.0954747442, 0.0103823968,
            0.00960214734, 0.0265479104, 0.00522059695, 0.00771554214,
            0.103232813, 0.0110520038, 0.00702508106, 0.477343689,
            0.0606874398, 0.00358806032, 0.023034354, 0.0767161122,
        }
    },
    {
        .name = "penalties of the last 3",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = 3, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            0.953125, -1.78125, -1.09375, -1.890625,
            0.359375, 1.28125, -0.78125, -0.953125,
            0.484375, 0.59375, -0.203125, -0.484375,
            1.734375, -0.34375, 0.296875, -2.375,
        },
        .want = {
            0.0507216854, 0.00962438487, 0.0191403748, 0.00181970603,
            0.081853001, 0.0641182183, 0.0261617905, 0.0220304364,
            0.0927516015, 0.103471889, 0.0466384341, 0.0352045371,
            0.323734899, 0.0405201738, 0.0768937784, 0.00531509012,
        }
    },
    {
        .name = "penalties of the last 5",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = 5, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.75, -1.15625, -0.3125, 2.515625,
            0.265625, 1.0625, 1.75, 2.390625,
            -0.515625, 0.390625, 0.515625, 1.03125,
            0.234375, 0.484375, 0.25, -0.640625,
        },
        .want = {
            0.00471949861, 0.00944468895, 0.0193792434, 0.0602545186,
            0.0391471478, 0.0288073666, 0.172725317, 0.327775056,
            0.0179228703, 0.04435953, 0.0502659328, 0.0841795963,
            0.0379427167, 0.0487194126, 0.0385402275, 0.0158168775,
        }
    },
    {
        .name = "penalties of the last 100",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.4, .frequency_penalty =
            0.3, .presence_penalty = 0.5, .repeat_last_n = 100,
            .dry_multiplier = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0, 1, 1, 2 },
        .n_prompt = 4,
        .generated = { 3, 3, 0, 5 },
        .n_generated = 4,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x0,
        .logits = {
            -0.375, -1.21875, 0.3125, 2.359375,
            1.515625, -2.375, -1.03125, 1.8125,
            3.21875, 0.75, -0.671875, -1.984375,
            -1.65625, -0.859375, 0.84375, -0.25,
        },
        .want = {
            0.00577532923, 0.00394459096, 0.027161745, 0.0390117593,
            0.098910981, 0.000351198132, 0.00774730673, 0.133099273,
            0.543128133, 0.045997878, 0.0110975045, 0.00298685282,
            0.00414683447, 0.00920015438, 0.0505187859, 0.0169216736,
        }
    },
    {
        .name = "a bad word of one token",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 1 },
        .n_generated = 1,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 3, -1 },
        .n_words = 2,
        .allowed = 0x0,
        .logits = {
            -1.5625, 1.8125, 1.015625, -0.953125,
            -0.4375, 1.5625, -0.4375, -1.65625,
            0.984375, -1.828125, 1.671875, -1.9375,
            -0.953125, -0.296875, 0.546875, -1.625,
        },
        .want = {
            0.0078489062, 0.229378662, 0.103389063, 0,
            0.0241763331, 0.178640282, 0.0241763331, 0.00714651042,
            0.100208116, 0.00601796514, 0.199287635, 0.00539446908,
            0.0144363479, 0.0278267889, 0.0646992225, 0.00737336501,
        }
    },
    {
        .name = "a bad word that has begun",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0, 1 },
        .n_generated = 2,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 1, 3, -1 },
        .n_words = 3,
        .allowed = 0x0,
        .logits = {
            -0.984375, -0.328125, 0.71875, 0.75,
            -0.359375, 0.15625, 2.0625, 1.75,
            -0.75, 0.46875, 0.640625, -0.609375,
            -0.5625, 0.765625, -2.375, -1.109375,
        },
        .want = {
            0.0142146409, 0.0273994375, 0.0780537337, 0,
            0.0265564454, 0.0444736769, 0.299210543, 0.21890711,
            0.0179689898, 0.060788309, 0.072187903, 0.0206821805,
            0.0216747391, 0.0817996106, 0.00353830388, 0.0125443766,
        }
    },
    {
        .name = "one that has not",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 1, 0 },
        .n_generated = 2,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 1, 3, -1 },
        .n_words = 3,
        .allowed = 0x0,
        .logits = {
            -1.359375, 2.390625, 1.546875, -0.0625,
            0.359375, 0.765625, 0.4375, -0.265625,
            0.09375, -0.4375, -2.125, -0.5625,
            -1.21875, 0.921875, -0.3125, 0.515625,
        },
        .want = {
            0.0084590029, 0.359685956, 0.154699002, 0.030941747,
            0.0471805299, 0.0708263641, 0.0510143164, 0.0252539179,
            0.0361745671, 0.0212659309, 0.00393380168, 0.0187671182,
            0.00973625266, 0.0828044088, 0.0240974568, 0.0551596278,
        }
    },
    {
        .name = "one that began in the prompt",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 1 },
        .n_prompt = 1,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 1, 3, -1 },
        .n_words = 3,
        .allowed = 0x0,
        .logits = {
            -0.0625, -0.296875, -0.140625, -0.703125,
            1.390625, 1.140625, 2.671875, 1.328125,
            -1.03125, 0.25, 2.515625, 2.46875,
            -0.515625, -0.234375, 0.125, 0.109375,
        },
        .want = {
            0.0162267011, 0.0128363771, 0.0150072452, 0.00855087058,
            0.0693927989, 0.0540431661, 0.249893068, 0.0651885017,
            0.00615896103, 0.0221792707, 0.213744868, 0.203956778,
            0.0103143187, 0.0136642523, 0.0195731377, 0.0192696843,
        }
    },
    {
        .name = "several",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0, 1 },
        .n_generated = 2,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0, 1, 3, -1, 1, 4, -1, 2, 4, -1, 7, -1, 1, 5, -1 },
        .n_words = 15,
        .allowed = 0x0,
        .logits = {
            0.703125, -1.21875, -1.109375, 0.453125,
            0.3125, -2.796875, -0.234375, -2.859375,
            -0.421875, -0.390625, 0.5625, 2.6875,
            -0.359375, 0.890625, -0.75, -3.703125,
        },
        .want = {
            0.0812878024, 0.0118950337, 0.013269869, 0,
            0, 0, 0.0318327608, 0,
            0.0263902856, 0.0272280032, 0.0706240666, 0.59132807,
            0.0280923128, 0.0980518062, 0.0190082097, 0.000991779944,
        }
    },
    {
        .name = "with DRY",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.8, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0, 1, 5, 0, 1 },
        .n_generated = 5,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 1, 3, -1, 9, -1 },
        .n_words = 5,
        .allowed = 0x0,
        .logits = {
            0.234375, 0.75, 0.21875, -1.171875,
            1.375, -0.03125, 1.28125, 0.5,
            -1.359375, -0.625, -1.75, 0.34375,
            0.515625, 1.109375, 1.40625, 1,
        },
        .want = {
            0.045779906, 0.0766669151, 0.0450701543, 0,
            0.143232654, 0.0157717484, 0.130414816, 0.0597082535,
            0.00930075203, 0, 0.00629320362, 0.0510711756,
            0.0606485217, 0.109820285, 0.147779347, 0.0984422676,
        }
    },
    {
        .name = "allowed tokens",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x8052,
        .logits = {
            0.84375, -0.84375, 0.28125, -0.546875,
            -0.875, 0.859375, -1.21875, -1.71875,
            0.125, 2.34375, -0.828125, -1.65625,
            1.59375, 0.765625, 0.578125, 2.5625,
        },
        .want = {
            0, 0.0304799204, 0, 0,
            0.0295421518, 0, 0.0209485225, 0,
            0, 0, 0, 0,
            0, 0, 0, 0.919029405,
        }
    },
    {
        .name = "one allowed token",
        .p = {
            .temperature = 2.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 0 },
        .n_words = 0,
        .allowed = 0x8000,
        .logits = {
            -0.4375, -0.671875, 1.078125, -2.90625,
            -0.328125, -0.640625, 1.546875, 1.171875,
            1.265625, -1.84375, -1.1875, -2.484375,
            -0.609375, -2.375, 2.703125, 0.796875,
        },
        .want = {
            0, 0, 0, 0,
            0, 0, 0, 0,
            0, 0, 0, 0,
            0, 0, 0, 1,
        }
    },
    {
        .name = "allowed tokens and a bad word",
        .p = {
            .temperature = 1.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0,
            .typical_p = 1.0, .repetition_penalty = 1.0, .frequency_penalty =
            0.0, .presence_penalty = 0.0, .repeat_last_n = -1, .dry_multiplier
            = 0.0, .dry_base = 1.75, .dry_allowed_length = 2,
            .dry_penalty_last_n = -1, .top_n_sigma = -1.0, .xtc_probability =
            0.0, .xtc_threshold = 0.1, .dynatemp_range = 0.0,
            .dynatemp_exponent = 1.0
        },
        .prompt = { 0 },
        .n_prompt = 0,
        .generated = { 0 },
        .n_generated = 0,
        .breakers = { NULL }, .n_breakers = 0,
        .words = { 4, -1 },
        .n_words = 2,
        .allowed = 0x8052,
        .logits = {
            1.640625, -0.3125, 0.03125, 0.15625,
            -1.375, -2.125, -1.203125, -0.625,
            -2.0625, -2.15625, -0.5, 0.125,
            -1.8125, 1.140625, -1.171875, 2.046875,
        },
        .want = {
            0, 0.0833699234, 0, 0,
            0, 0, 0.0342149476, 0,
            0, 0, 0, 0,
            0, 0, 0, 0.882415129,
        }
    },
};
