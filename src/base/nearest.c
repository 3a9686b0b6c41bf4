#include "base/nearest.h"

#include <string.h>

enum { COMPARED_MAX = 48, EDITS_MAX = 3 };

/* Insertions, deletions and replacements between two words (Wagner and Fischer 1974). */
static uint32_t
edit_distance(const char *a, const char *b)
{
    uint32_t row[COMPARED_MAX + 1], length = (uint32_t)strnlen(b, COMPARED_MAX);

    for (uint32_t j = 0; j <= length; j++)
        row[j] = j;
    for (uint32_t i = 0; a[i]; i++) {
        uint32_t diagonal = row[0];

        row[0] = i + 1;
        for (uint32_t j = 0; j < length; j++) {
            uint32_t changed = diagonal + (a[i] != b[j]);
            uint32_t least = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;

            diagonal = row[j + 1];
            row[j + 1] = changed < least ? changed : least;
        }
    }
    return row[length];
}

void
bh_nearest_try(struct bh_nearest *nearest, const char *wanted, const char *word)
{
    uint32_t edits, best = nearest->word ? nearest->edits : EDITS_MAX + 1;

    if (strlen(wanted) > COMPARED_MAX || strlen(word) > COMPARED_MAX)
        return;
    edits = edit_distance(word, wanted);
    if (edits < best && edits < strlen(wanted))
        *nearest = (struct bh_nearest){ word, edits };
}
