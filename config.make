# Appended to nginx's Makefile: the engine's library.

cat << END                                            >> $NGX_MAKEFILE

.PHONY:	llm_library

$ngx_llm_objs/libllm.a:	llm_library
	\$(MAKE) -C $ngx_addon_dir -f engine/Makefile \\
		CC="\$(CC)" OBJS=$ngx_llm_objs lib

END
