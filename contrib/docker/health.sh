#!/bin/bash
#
# Is the model there?  The image has no curl, but bash opens connections.

exec 3<> "/dev/tcp/127.0.0.1/${PORT:-8080}" || exit 1
printf 'GET /health HTTP/1.0\r\n\r\n' >&3
read -r status <&3
[[ $status == *' 200 '* ]]
