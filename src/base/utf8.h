#ifndef BH_BASE_UTF8_H
#define BH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTF-8, one character at a time. */

/* Bytes (1 to 4) of the character that `text` begins with, or 0 when its first
 * bytes are no UTF-8: overlong, a surrogate, above U+10FFFF, cut off, empty. */
size_t bh_utf8_step(const char *text, size_t length);

/* The same; 0 as well where the character is not shown (bh_utf8_is_shown). */
size_t bh_utf8_shown_step(const char *text, size_t length);

/* The character that a step of `bytes` bytes goes over. */
uint32_t bh_utf8_code(const char *text, size_t bytes);

/* Write the character `code` (a Unicode scalar value) to `ret_bytes`; its length. */
size_t bh_utf8_encode(uint32_t code, char ret_bytes[4]);

/* Whether all of it is UTF-8. */
bool bh_utf8_is_valid(const char *text);

/* Whether all of it is what it looks like: UTF-8 without control characters and without those
 * that are not seen, but make one text another or change what is seen: that turn the order of
 * writing (Trojan Source), join, divide, hide, choose a variant, or fill; and without those that
 * every program may show as it likes, or not at all: private use, and what is no character. */
bool bh_utf8_is_shown(const char *text);

/* Replace every byte of `text` that bh_utf8_is_shown would not have by '?', so that it can be
 * shown on a terminal and put into JSON. */
void bh_utf8_scrub(char *text);

/* The same of lines: ends of lines and tabs stay. */
void bh_utf8_scrub_lines(char *text);

#endif
