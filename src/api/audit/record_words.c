#include "api/audit/record_words.h"

#include <stddef.h>
#include <string.h>

#include "base/nearest.h"

static const char *const verbs[] = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    verb,
#include "tables/operations.tbl"
#undef BH_OPERATION
#define BH_RECORDED_VERB(operation, verb) verb,
#include "tables/recorded_verbs.tbl"
#undef BH_RECORDED_VERB
#define BH_GRANT(rule, role, verb) verb,
#include "tables/roles.tbl"
#undef BH_GRANT
#define BH_RECORD_VERB(verb) verb,
#define BH_RECORD_OBJECT(type)
#include "tables/record_words.tbl"
#undef BH_RECORD_OBJECT
#undef BH_RECORD_VERB
};

static const char *const objects[] = {
#define BH_RECORD_VERB(verb)
#define BH_RECORD_OBJECT(type) type,
#include "tables/record_words.tbl"
#undef BH_RECORD_OBJECT
#undef BH_RECORD_VERB
};

struct words {
    const char *parameter, *what, *example;
    const char *const *items;
    size_t count;
};

static bh_rc
record_words_check(const struct words *words, const char *word, struct bh_err *err)
{
    struct bh_nearest nearest = { 0 };

    for (size_t i = 0; i < words->count; i++) {
        if (*word && strcmp(words->items[i], word) == 0)
            return BH_OK;
        bh_nearest_try(&nearest, word, words->items[i]);
    }
    bh_err_set(err, BH_INVALID, "%s: no record has the %s \"%.60s\"", words->parameter, words->what, word);
    if (nearest.word)
        return bh_err_hint(err, "did you mean %s?", nearest.word);
    return bh_err_hint(err, "one like %s: bulkhead audit tail shows what there is", words->example);
}

bh_rc
bh_record_words_check_verb(const char *verb, struct bh_err *err)
{
    static const struct words words = { "verb", "verb", "job.submit", verbs, BH_COUNT(verbs) };

    return record_words_check(&words, verb, err);
}

bh_rc
bh_record_words_check_object(const char *type, struct bh_err *err)
{
    static const struct words words = { "object", "type", "job or job/7", objects, BH_COUNT(objects) };

    return record_words_check(&words, type, err);
}
