/* Included into every file of the libraries that jobs load (meson.build): whatever the machine
 * they were built on has, they ask for the functions' versions that each C library since 2.17 has,
 * because an image brings its own.  In those before 2.34 the functions stand in libdl.so.2 and
 * libpthread.so.0, which the libraries therefore name; later these are there and empty. */
#ifndef BH_SHIM_PROCESS_LIBC_H
#define BH_SHIM_PROCESS_LIBC_H

#if defined(__ASSEMBLER__)
#elif defined(__x86_64__)
#define BH_OLDEST "GLIBC_2.2.5"
#define BH_OLDEST_DLINFO "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define BH_OLDEST "GLIBC_2.17"
#define BH_OLDEST_DLINFO "GLIBC_2.17"
#endif

#ifdef BH_OLDEST
#define BH_OLD(name) __asm__(".symver " #name "," #name "@" BH_OLDEST);
BH_OLD(dlclose)
BH_OLD(dlopen)
__asm__(".symver dlinfo,dlinfo@" BH_OLDEST_DLINFO);
BH_OLD(dlsym)
BH_OLD(pthread_attr_setstacksize)
BH_OLD(pthread_create)
BH_OLD(pthread_key_create)
BH_OLD(pthread_setspecific)
BH_OLD(pthread_sigmask)
#undef BH_OLD
#endif

#endif
