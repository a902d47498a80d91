"""Facts about ngx_http_llm_module that the demo model is trained on.

Plain tables; skills_knowledge.py makes questions from them.
"""

# name, what it does, contexts, an example, its default (or None)
DIRECTIVES = [
    ("llm_model",
     "declares a model: its name, the path of its GGUF file and its options",
     "http", "llm_model demo models/demo.gguf default;", None),
    ("llm_queue",
     "sets how many requests may wait and for how long; beyond that the "
     "answer is 429",
     "http", "llm_queue 64 timeout=60s;", "64 timeout=60s"),
    ("llm_shared_memory",
     "sets the size of the shared-memory rings of each worker",
     "http", "llm_shared_memory 8m;", "8m"),
    ("llm_api",
     "serves the OpenAI API below the prefix of its location",
     "location", "location /v1 { llm_api; }", None),
    ("llm_health",
     "answers whether the server is ready, and if not, why",
     "location", "location = /health { llm_health; }", None),
    ("llm_metrics",
     "shows figures about the models, for Prometheus or as JSON",
     "location", "location = /metrics { llm_metrics prometheus; }",
     "prometheus"),
    ("llm_tenant",
     "says which tenant a request counts for, and with what weight",
     "http, server, location", "llm_tenant $remote_user weight=2;", None),
    ("llm_priority",
     "sets the priority of a request from -100 to 100; the higher comes first",
     "http, server, location", "llm_priority 10;", "0"),
    ("llm_max_tokens",
     "caps the number of tokens that one answer may have",
     "http, server, location", "llm_max_tokens 512;", None),
    ("llm_timeout",
     "limits the time that a request may take",
     "http, server, location", "llm_timeout 120s;", None),
    ("llm_heartbeat",
     "sends a comment on a silent stream now and then, so that it stays open",
     "http, server, location", "llm_heartbeat 15s;", "15s"),
    ("llm_stream_buffer",
     "sets how much of an answer may wait for a slow client",
     "http, server, location", "llm_stream_buffer 256k;", "256k"),
    ("llm_ignore_client_abort",
     "lets a request go on after its client has gone away",
     "http, server, location", "llm_ignore_client_abort on;", "off"),
    ("llm_intercept_errors",
     "lets error_page answer in place of the module's JSON errors",
     "http, server, location", "llm_intercept_errors on;", "off"),
]

# parameter of llm_model, what it sets
PARAMETERS = [
    ("alias", "gives the model further names, separated by commas"),
    ("ctx", "sets the longest sequence of one request, in tokens"),
    ("parallel", "sets how many sequences run at once"),
    ("threads", "sets how many threads compute"),
    ("device", "chooses where the model runs: auto, cpu, cuda or emu"),
    ("kv_cache", "sets the memory for the pages that all sequences share"),
    ("batch", "sets how many tokens one step may compute"),
    ("max_tokens", "sets the length of answers to requests that name none"),
    ("template", "names a file with another chat template"),
    ("idle", "sets after what time an unused model is unloaded"),
    ("lazy", "loads the model only at its first request"),
    ("default", "marks the model that serves requests that name none"),
]

# variable, what it holds
VARIABLES = [
    ("$llm_model", "the name of the model that served the request"),
    ("$llm_request_id", "the id of the request"),
    ("$llm_tenant", "the tenant that the request counts for"),
    ("$llm_prompt_tokens", "the number of tokens of the prompt"),
    ("$llm_cached_tokens", "the number of prompt tokens found in the cache"),
    ("$llm_completion_tokens", "the number of tokens of the answer"),
    ("$llm_finish_reason", "the reason why the answer ended"),
    ("$llm_queue_time", "the time that the request waited in the queue"),
    ("$llm_ttft", "the time to the first token"),
    ("$llm_tpot", "the time per output token"),
]

# command, what it does
COMMANDS = [
    ("./build.sh run", "builds everything and serves the demo model on "
     "127.0.0.1:8080 in the foreground"),
    ("./build.sh build", "builds the module and the command objs/llm"),
    ("./build.sh test", "runs the tests"),
    ("./build.sh bench", "measures the speed of the engine and of the server"),
    ("./build.sh install", "installs the module"),
    ("./build.sh clean", "removes what was built"),
    ("llm info", "prints what a GGUF file holds"),
    ("llm tokenize", "turns text into token ids, on one line"),
    ("llm detokenize", "turns token ids back into text"),
    ("llm render", "prints the prompt that the chat template makes of a "
     "request"),
    ("llm logits", "prints the logits of the last position or of all"),
    ("llm complete", "completes a prompt on the command line"),
    ("llm bench", "measures the speed of a model"),
    ("llm perplexity", "measures the perplexity of a text"),
]

# endpoint, what it does
ENDPOINTS = [
    ("/v1/models", "lists the models that this location may use"),
    ("/v1/chat/completions", "answers a conversation"),
    ("/v1/completions", "continues a text"),
    ("/health", "says whether the server is ready"),
    ("/metrics", "shows figures for Prometheus"),
]

# how to do something (completes "How do I ..."), answer
HOW_TO = [
    ("limit the number of waiting requests",
     "Use llm_queue, for example: llm_queue 64 timeout=60s;"),
    ("serve a model", "Use llm_model and llm_api, for example: "
     "llm_model demo models/demo.gguf default;"),
    ("serve my own model", "Name its GGUF file with llm_model, for example: "
     "llm_model mine models/mine.gguf default;"),
    ("limit the length of answers", "Use llm_max_tokens, for example: "
     "llm_max_tokens 512;"),
    ("give a model another name", "Use alias= of llm_model, for example: "
     "alias=gpt-4o-mini."),
    ("start the server", "Run ./build.sh run."),
    ("run the tests", "Run ./build.sh test."),
    ("measure the speed", "Run ./build.sh bench."),
    ("build the module", "Run ./build.sh build."),
    ("check whether the server is ready", "Ask /health, which llm_health "
     "serves."),
    ("list the models", "Ask /v1/models."),
    ("use a GPU", "Use device=cuda of llm_model."),
    ("change the port", "Set LLM_PORT before ./build.sh run."),
    ("require a password", "Use nginx's own auth_basic next to llm_api."),
    ("keep a silent stream open", "Use llm_heartbeat, for example: "
     "llm_heartbeat 15s;"),
    ("limit the time of a request", "Use llm_timeout, for example: "
     "llm_timeout 120s;"),
    ("limit requests", "Use nginx's own limit_req next to llm_api."),
    ("see the metrics", "Use llm_metrics, for example: "
     "location = /metrics { llm_metrics; }"),
    ("give some requests priority", "Use llm_priority, for example: "
     "llm_priority 10;"),
    ("unload a model", "Use idle= of llm_model, for example: idle=10m."),
    ("use TLS", "Use nginx's own ssl directives in the server."),
    ("see the prompt of a request", "Run llm render."),
    ("count the tokens of a text", "Run llm tokenize."),
    ("set the context length", "Use ctx= of llm_model, for example: "
     "ctx=4096."),
    ("use another chat template", "Use template= of llm_model."),
    ("stream an answer", 'Set "stream": true in the request.'),
    ("log the number of tokens", "Use $llm_prompt_tokens and "
     "$llm_completion_tokens in log_format."),
    ("use my own error pages", "Use llm_intercept_errors on;"),
    ("build against another nginx", "Set NGINX_SRC before ./build.sh build."),
]

# subject, what it is
TERMS = [
    ("nginx", "nginx is a web server and a proxy."),
    ("ngx_http_llm_module", "ngx_http_llm_module is a module that serves "
     "language models from inside nginx."),
    ("this module", "This module serves language models from inside nginx."),
    ("GGUF", "GGUF is a file format that holds a model and its tokenizer."),
    ("a token", "A token is a piece of text, often a word or a part of one."),
    ("a tokenizer", "A tokenizer turns text into tokens and back."),
    ("an LLM", "An LLM is a large language model: it predicts the next token "
     "of a text."),
    ("a language model", "A language model predicts the next token of a "
     "text."),
    ("a chat template", "A chat template turns a conversation into a prompt."),
    ("the KV cache", "The KV cache keeps the keys and values of earlier "
     "tokens, so that they are computed once."),
    ("streaming", "Streaming sends an answer token by token while it is "
     "made."),
    ("the context length", "The context length is the longest sequence that "
     "a model can read, in tokens."),
    ("TTFT", "TTFT is the time to the first token."),
    ("temperature in sampling", "Temperature sets how random the sampling "
     "is; 0 always takes the most likely token."),
    ("quantisation", "Quantisation stores weights with fewer bits."),
    ("Q8_0", "Q8_0 stores weights as 8-bit integers in blocks of 32 with one "
     "scale each."),
    ("a prompt", "A prompt is the text that a model is given."),
    ("an API key", "An API key is a secret that says who sends a request."),
    ("a GPU", "A GPU is a processor that computes many numbers at once."),
    ("a web server", "A web server answers requests that browsers send."),
    ("prefill", "Prefill computes the prompt before the first token."),
    ("SSE", "SSE are server-sent events: an answer sent piece by piece."),
    ("a tool call", "A tool call asks the client to run a function."),
    ("top_p", "top_p samples from the most likely tokens whose "
     "probabilities add up to p."),
    ("top_k", "top_k samples from the k most likely tokens."),
    ("a stop sequence", "A stop sequence is a text that ends the answer."),
]
