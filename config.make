# Appended to nginx's Makefile: the engine's library, with the flags given to
# nginx's configure.  build.sh, which sets LLM_OBJS, has built it already.

if [ -z "$LLM_OBJS" ]; then

cat << END                                            >> $NGX_MAKEFILE

.PHONY:	llm_library

$ngx_llm_objs/libllm.a:	llm_library
	\$(MAKE) -C $ngx_addon_dir -f engine/Makefile \\
		CC="\$(CC)" OBJS=$ngx_llm_objs CPPFLAGS= \\
		CFLAGS="-O2 -g $NGX_CC_OPT" lib

END

fi
