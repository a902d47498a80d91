# Adds the engine's library and llm-media to nginx's Makefile, with the flags
# given to nginx's configure; not if LLM_OBJS is set: then build.sh has built
# them.

if [ -z "$LLM_OBJS" ]; then

cat << END                                            >> $NGX_MAKEFILE

.PHONY:	llm_library

$ngx_llm_objs/libllm.a:	llm_library
	\$(MAKE) -C $ngx_addon_dir -f engine/Makefile \\
		CC="\$(CC)" OBJS=$ngx_llm_objs CPPFLAGS= \\
		CFLAGS="-O2 -g $NGX_CC_OPT" lib media

END

fi
