# The flags that all compilations have in common: the caller's, those that
# make a fault harder to exploit, and warnings as errors if asked for.
# engine/Makefile and kernels/cuda/Makefile include it, from the root of the
# clone; build.sh asks it for the module's.

CFLAGS   ?= -O2 -g

# A newer compiler warns of more, which must not stop who builds: warnings are
# errors with WERROR=1 alone, as CI has it.

ERRORS   := $(if $(filter 1,$(WERROR)),-Werror)

# _FORTIFY_SOURCE wants optimised code, and the sanitizers find what it would.
# It is left to callers who name it themselves.

optimised = $(filter-out -O0,$(lastword $(filter -O%,$(1))))
fortify   = $(if $(SAN)$(findstring _FORTIFY_SOURCE,$(1)),,$(if $(call \
            optimised,$(1)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))

# $(call harden,FLAGS) goes before the caller's FLAGS

harden = -fstack-protector-strong $(call fortify,$(1))
HARDEN_LINK := -Wl,-z,relro -Wl,-z,now

# What a program and a backend that it loads must agree on: a checksum of the
# headers that both include.

INTERFACE := $(firstword $(shell cat kernels/kernels.h kernels/draw.h \
               kernels/ops.def kernels/types.h kernels/types.def \
               engine/base/base.h | cksum))

# nginx's own flags have -Werror

NGINX_CC := -fPIC -Wformat -Werror=format-security \
            $(call harden,$(CPPFLAGS) $(CFLAGS)) \
            $(if $(ERRORS),,-Wno-error) $(CPPFLAGS) $(CFLAGS)
NGINX_LD := -fPIC $(HARDEN_LINK) $(LDFLAGS)
