# The flags of all compilations: the caller's, hardening flags, and warnings as
# errors if wanted.  Included by engine/Makefile and kernels/cuda/Makefile, from
# the root of the clone; http/nginx.sh reads the module's, NGINX_CC, NGINX_LD.

CFLAGS   ?= -O2 -g

# Warnings are errors only with WERROR=1, as in CI: a user's newer compiler has
# new warnings, which must not stop the build.

ERRORS   := $(if $(filter 1,$(WERROR)),-Werror)

# _FORTIFY_SOURCE needs optimised code, and is not set with sanitizers, which
# find the same errors, nor if the caller's flags set it.

optimised = $(filter-out -O0,$(lastword $(filter -O%,$(1))))
fortify   = $(if $(SAN)$(findstring _FORTIFY_SOURCE,$(1)),,$(if $(call \
            optimised,$(1)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))

# $(call harden,FLAGS): hardening flags, to be put before the caller's FLAGS

harden = -fstack-protector-strong $(call fortify,$(1))
HARDEN_LINK := -Wl,-z,relro -Wl,-z,now

# Checksum of the headers that a program and its backends include: both must be
# built with the same interface.

INTERFACE := $(firstword $(shell cat kernels/kernels.h kernels/draw.h \
               kernels/ops.def kernels/types.h kernels/types.def \
               engine/base/base.h | cksum))

# -Wno-error, because nginx's own flags have -Werror

NGINX_CC := -fPIC -Wformat -Werror=format-security \
            $(call harden,$(CPPFLAGS) $(CFLAGS)) \
            $(if $(ERRORS),,-Wno-error) $(CPPFLAGS) $(CFLAGS)
NGINX_LD := -fPIC $(HARDEN_LINK) $(LDFLAGS)
