#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { BLOCK_BYTES = 16 << 10 };

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct bh_arena {
    struct arena_block *first, *current;
    size_t max, used;
};

static struct arena_block *
block_new(size_t size)
{
    struct arena_block *block = calloc(1, sizeof *block + size);

    BH_ASSERT(block);
    block->size = size;
    return block;
}

struct bh_arena *
bh_arena_new(size_t max_bytes)
{
    struct bh_arena *arena = calloc(1, sizeof *arena);

    BH_ASSERT(arena);
    arena->max = max_bytes;
    arena->first = arena->current = block_new(BLOCK_BYTES);
    return arena;
}

static void
blocks_free(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;

        free(block);
        block = next;
    }
}

void
bh_arena_free(struct bh_arena *arena)
{
    if (!arena)
        return;
    blocks_free(arena->first);
    free(arena);
}

void *
bh_arena_alloc(struct bh_arena *arena, size_t bytes)
{
    struct arena_block *block = arena->current;
    size_t size = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    void *memory;

    if (size < bytes || size > arena->max - arena->used)
        return NULL;
    if (size > block->size - block->used) {
        block->next = block_new(size > BLOCK_BYTES ? size : BLOCK_BYTES);
        block = arena->current = block->next;
    }
    memory = block->bytes + block->used;
    block->used += size;
    arena->used += size;
    return memory;
}

char *
bh_arena_strndup(struct bh_arena *arena, const char *text, size_t length)
{
    size_t n = strnlen(text, length);
    char *copy = bh_arena_alloc(arena, n + 1);

    if (copy)
        memcpy(copy, text, n);
    return copy;
}

char *
bh_arena_strdup(struct bh_arena *arena, const char *text)
{
    return bh_arena_strndup(arena, text, strlen(text));
}

char *
bh_arena_printf(struct bh_arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    BH_ASSERT(n >= 0);
    text = bh_arena_alloc(arena, (size_t)n + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

void
bh_arena_reset(struct bh_arena *arena)
{
    blocks_free(arena->first->next);
    arena->first->next = NULL;
    memset(arena->first->bytes, 0, arena->first->used);
    arena->first->used = 0;
    arena->current = arena->first;
    arena->used = 0;
}

size_t
bh_arena_used(const struct bh_arena *arena)
{
    return arena->used;
}
