# Sourced by benches that serve a model: the configuration of an nginx with one
# model, and a trap that stops it.  NGINX_PID: its pid; empty: not running.

NGINX_PID=


# prints the configuration; arguments: MODULE PORT PARAMETERS-OF-LLM_MODEL

site_conf() {
    cat << END
daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
error_log logs/error.log notice;
pid logs/nginx.pid;
load_module $1;
$([ "$(id -u)" != 0 ] || echo "user $(id -un);")
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    llm_model bench $3 default;
    llm_queue 1024;
    server {
        listen 127.0.0.1:$2;
        location /v1 { llm_api; }
        location = /health { llm_health; }
    }
}
END
}


site_stop() {
    if [ -n "$NGINX_PID" ]; then
        kill "$NGINX_PID"
        wait "$NGINX_PID" || true
    fi 2> /dev/null
}

trap site_stop EXIT
