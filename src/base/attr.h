#ifndef BH_BASE_ATTR_H
#define BH_BASE_ATTR_H

/* Compiler attributes under one name each, and ownership by scope. */

#define BH_MUST_USE __attribute__((warn_unused_result))
#define BH_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#define BH_EXPORT __attribute__((visibility("default")))

#define BH_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* `BH_AUTO(free_fn) T *p = NULL;` runs free_fn(&p)'s pointee release when `p`
 * leaves scope.  `fn` must take a pointer to the variable: define one with
 * BH_AUTO_DEFINE(type, free) next to the type's free function. */
#define BH_AUTO(fn) __attribute__((cleanup(fn##_auto)))
#define BH_AUTO_DEFINE(type, fn)                                                                             \
    static inline void fn##_auto(type *variable)                                                             \
    {                                                                                                        \
        if (*variable)                                                                                       \
            fn(*variable);                                                                                   \
    }

/* Move a pointer out of an owned variable, leaving NULL behind. */
#define bh_steal(variable)                                                                                   \
    ({                                                                                                       \
        __typeof__(*(variable)) stolen_ = *(variable);                                                       \
        *(variable) = NULL;                                                                                  \
        stolen_;                                                                                             \
    })

#endif
