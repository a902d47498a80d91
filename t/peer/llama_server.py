#!/usr/bin/env python3
"""Takes llama-server's command line, and runs nginx with this module.

usage: llama_server.py --host HOST --port PORT [llama-server's options]

For llama-server's own tests, which start it by its path (server.py).  What an
option means there is said to nginx by a directive that means it: --ctx-size and
--parallel are ctx= and parallel=, --temp is in llm_defaults, --api-key a file of
llm_api_keys.  Options that are about how llama-server computes, or that have no
counterpart, are read over; DROPPED has those.  A model is a stand-in, which
server.py has made in PEER_MODELS: NAMES has which.

nginx runs in the foreground, in a folder of its own that is removed behind it.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
MODELS = Path(os.environ["PEER_MODELS"])

# the stand-in of the first name that is a part of the option's
NAMES = [
    ("infill", "infill.gguf"), ("split", "split-00001-of-00003.gguf"),
    ("stories15M_MOE", "moe.gguf"),
    ("bge", "encoder.gguf"), ("rerank", "ranker.gguf"),
    ("gemma3", "vision.gguf"), ("stories260K", "text.gguf"),
    ("", "chat.gguf"),
]

VALUES = {                              # option: its default
    "host": "127.0.0.1", "port": "8080", "temp": "0.8", "seed": "",
    "model": "", "model-url": "", "model-draft": "", "hf-repo": "",
    "hf-file": "", "models-dir": "", "models-max": "4", "models-preset": "",
    "batch-size": "2048", "pooling": "", "alias": "", "tags": "",
    "ctx-size": "0", "parallel": "4", "n-predict": "-1", "api-key": "",
    "reasoning-format": "", "reasoning": "", "chat-template": "",
    "chat-template-file": "", "cors-origins": "", "sleep-idle-seconds": "-1", "media-path": "",
}
FLAGS = ["embedding", "reranking", "metrics", "slots", "no-slots",
         "kv-unified", "no-ui", "ui-mcp-proxy", "verbose", "no-mmproj",
         "no-models-autoload"]
DROPPED_VALUES = ["ubatch-size", "threads", "n-gpu-layers", "slot-save-path",
                  "grp-attn-n", "grp-attn-w", "lora", "cache-ram",
                  "spec-draft-n-max", "spec-draft-n-min", "mmproj-url",
                  "spec-type", "spec-synth-len", "spec-synth-rates", "tools",
                  "tools-runtime", "mcp-servers-config", "mcp-servers-json"]
DROPPED_FLAGS = ["offline", "cont-batching", "context-shift", "jinja",
                 "no-jinja", "no-cache-idle-slots", "swa-full"]

# templates that llama-server knows by name, as far as its tests use them
TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n"
              "{{ m.content }}<|im_end|>\n{% endfor %}"
              "{% if add_generation_prompt %}<|im_start|>assistant\n"
              "{% endif %}",
    "llama3": "{% for m in messages %}<|start_header_id|>{{ m.role }}"
              "<|end_header_id|>\n\n{{ m.content }}<|eot_id|>{% endfor %}"
              "{% if add_generation_prompt %}<|start_header_id|>assistant"
              "<|end_header_id|>\n\n{% endif %}",
    "command-r": "{% for m in messages %}<|START_OF_TURN_TOKEN|>"
                 "{{ '<|USER_TOKEN|>' if m.role == 'user' else "
                 "'<|CHATBOT_TOKEN|>' if m.role == 'assistant' else "
                 "'<|SYSTEM_TOKEN|>' }}{{ m.content }}<|END_OF_TURN_TOKEN|>"
                 "{% endfor %}{% if add_generation_prompt %}"
                 "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}",
}

CONF = """\
load_module {objs}/ngx_http_llm_module.so;
daemon off;
{user}
worker_processes 1;
error_log stderr notice;
pid nginx.pid;

events {{ worker_connections 1024; }}

http {{
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    access_log off;
    client_max_body_size 64m;
    client_body_buffer_size 1m;
    default_type text/plain;
    {models}
    # the pictures of the tests, which are not fetched from the Internet
    map $llm_fetch_url $picture {{
        default  none;
        "~/tinygemma3-GGUF/resolve/main/test/(?<name>\\w+\\.png)$"  $name;
        "~^https://ggml\\.ai$"  page.html;
    }}
    map $http_origin $origin {{
        {origins}
    }}
    map "$request_method $origin" $methods {{
        "~^OPTIONS ."  "GET, POST, DELETE, OPTIONS";
    }}
    map $origin $headers {{
        "~."  "*";
    }}
    map $origin $credentials {{
        "~."  true;
    }}
    server {{
        {listen}
        llm_timeout 10m;
        llm_fetch /picture;
        llm_defaults '{defaults}';
        {server}
        add_header Access-Control-Allow-Origin $origin always;
        add_header Access-Control-Allow-Credentials $credentials always;
        add_header Access-Control-Allow-Methods $methods always;
        add_header Access-Control-Allow-Headers $headers always;
        location / {{
            if ($request_method = OPTIONS) {{ return 200; }}
            llm_api{api};
        }}
        location = /health {{ llm_api_keys off; llm_health; }}
        location = /picture {{
            internal;
            llm_api_keys off;
            rewrite ^ /pictures/$picture last;
        }}
        location /pictures/ {{
            internal;
            llm_api_keys off;
            types {{ image/png png; text/html html; }}
            alias {pictures}/;
        }}
        {locations}
    }}
}}
"""


def options():
    p = argparse.ArgumentParser(allow_abbrev=False)
    for name, value in VALUES.items():
        p.add_argument("--" + name, default=value)
    for name in DROPPED_VALUES:
        p.add_argument("--" + name, action="append")
    for name in FLAGS + DROPPED_FLAGS:
        p.add_argument("--" + name, action="store_true")
    for name in ("-ctk", "-ctv", "-fa"):
        p.add_argument(name)
    p.add_argument("--backend_sampling", action="store_true")
    return p.parse_args()


def stand_in(name):
    return MODELS / next(file for part, file in NAMES if part in name)


def pooled(file, pooling, folder):
    """The same encoder with another pooling type."""
    if not pooling:
        return file
    for path in (MODELS / f"{file.stem}-{pooling}.gguf",):
        if path.exists():
            return path
    raise SystemExit(f"no stand-in {file.stem} with --pooling {pooling}")


def template(o, file, folder):
    """The parameter of a chat template: one by name, a text, or a file."""
    if file.name.startswith("vision"):
        return f" template={MODELS / 'vision.jinja'}"
    if o.chat_template_file:
        path = Path(o.chat_template_file)
        if not path.exists():
            path = Path(os.environ.get("PEER_TEMPLATES", "")) / path.name
        return f" template={path.resolve()}"
    if not o.chat_template:
        return ""
    path = folder / "template.jinja"
    path.write_text(TEMPLATES.get(o.chat_template, o.chat_template))
    return f" template={path}"


def model(o, folder):
    """The llm_model line of a server with one model."""
    name = " ".join((o.model, o.hf_repo, o.hf_file, o.model_url))
    file = pooled(stand_in(name), o.pooling, folder)
    names = (o.alias or "model").split(",")
    slots = int(o.parallel)
    ctx = int(o.ctx_size) // (1 if o.kv_unified else slots)
    line = f"llm_model {min(names)} {file} default threads=2 parallel={slots}"
    rest = [n for n in names if n != min(names)]
    line += f" alias={','.join(rest)}" if rest else ""
    line += f" ctx={ctx}" if ctx else ""
    line += f" batch={o.batch_size}"
    line += template(o, file, folder)
    if file.name.startswith("vision") and not o.no_mmproj:
        line += f" mmproj={MODELS / 'mmproj.gguf'}"
    if o.model_draft:
        line += f" speculate=draft={MODELS / 'draft.gguf'}"
    if int(o.sleep_idle_seconds) > 0:
        line += f" idle={o.sleep_idle_seconds}s"
    return line + ";"


def router(o, folder):
    """The models that llama-server's router would find in its cache."""
    repos = ["ggml-org/tinygemma3-GGUF:Q8_0",
             "ggml-org/test-model-stories260K:F32",
             "ggml-org/test-model-stories260K-infill:F32"]
    ctx = int(o.ctx_size)
    if o.models_preset:
        text = Path(o.models_preset).read_text()
        repos = re.findall(r"^\[(.*)\]$", text, re.M)
    return "\n    ".join(
        f'llm_model "{repo}" {MODELS / "text.gguf"} threads=2 parallel=1'
        f" ctx={ctx} lazy;" for repo in repos)


def defaults(o):
    d = {"temperature": float(o.temp), "top_k": 40, "top_p": 0.95,
         "min_p": 0.05, "enable_thinking": o.reasoning != "off"}
    if o.seed:
        d["seed"] = int(o.seed)
    if int(o.n_predict) > 0:
        d["max_tokens"] = int(o.n_predict)
    if o.verbose:
        d["verbose"] = True
    return json.dumps(d)


def write_keys(o, folder):
    if not o.api_key:
        return ""
    digest = hashlib.sha256(o.api_key.encode()).hexdigest()
    (folder / "keys").write_text(
        json.dumps({"id": "test", "sha256": digest,
                    "scopes": ["generate", "embed", "tokenize", "models",
                               "monitor", "other", "admin"]}) + "\n")
    return "llm_api_keys keys;"


def places(o):
    """Locations beside those that are always there."""
    text = ""
    if o.no_slots:
        text += ("location = /slots { default_type application/json; return"
                 ' 501 \'{"error": {"code": 501, "type":'
                 ' "not_supported_error"}}\'; }\n')
    text += "location = /metrics { " + (
        "llm_metrics" if o.metrics else "return 501") + "; }\n"
    if not o.no_ui:
        text += f"""
        location = / {{ rewrite ^ /page/index.html last; }}
        location /page/ {{
            llm_api_keys off;
            types {{ text/html html; text/css css; text/javascript js; }}
            alias {ROOT}/web/;
        }}\n"""
    else:
        text += "location = / { return 404; }\n"
    for path in ("models", "v1/models"):
        text += f"location = /{path} {{ llm_api_keys off; llm_api; }}\n"
    text += "location /admin { llm_admin; }\n"
    for action in ("load", "unload"):
        text += (f"location = /models/{action}"
                 f" {{ rewrite ^ /admin/models/{action} last; }}\n")
    if o.ui_mcp_proxy:
        text += """
        location = /cors-proxy {
            proxy_pass $arg_url;
            proxy_pass_request_headers off;
            proxy_set_header Accept
                             $http_x_llama_server_proxy_header_accept;
            proxy_set_header Authorization
                             $http_x_llama_server_proxy_header_authorization;
        }\n"""
    else:
        text += "location = /cors-proxy { return 403; }\n"
    return text


def origins(o):
    """Whose pages may read answers: all, or those of this machine."""
    if o.cors_origins == "localhost" or o.tools:
        return ('"~^https?://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?$"'
                "  $http_origin;")
    return "default  $http_origin;"


def hosts(o):
    return [f"[{h}]" if ":" in h else h for h in o.host.split(",")]


def write_conf(o, folder):
    alone = o.model or o.hf_repo or o.model_url
    conf = CONF.format(
        objs=OBJS, user="user root;" if os.geteuid() == 0 else "",
        listen="".join(f"listen {h}:{o.port};" for h in hosts(o)),
        pictures=MODELS / "pictures",
        models=model(o, folder) if alone else router(o, folder),
        origins=origins(o), api=" fallback=" + min((o.alias or "model").split(",")) if alone
            else "", defaults=defaults(o), server=write_keys(o, folder),
        locations=places(o))
    (folder / "nginx.conf").write_text(conf)


def main():
    o = options()
    folder = Path(tempfile.mkdtemp(prefix="llama-server-"))
    for name in ("temp", "logs"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    write_conf(o, folder)
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
    nginx = subprocess.Popen(
        ["nginx", "-p", f"{folder}/", "-c", f"{folder}/nginx.conf", "-e",
         "stderr"], env=env)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: nginx.terminate())
    code = nginx.wait()
    shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
