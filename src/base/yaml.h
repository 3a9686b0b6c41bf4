#ifndef BH_BASE_YAML_H
#define BH_BASE_YAML_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* YAML as users write it for `bulkhead apply -f`, turned into the JSON that the
 * decoders read.
 *
 * A plain subset with one meaning per text: one document, a mapping or a list at
 * the top; no anchors, aliases, tags, merge keys or duplicate keys.  Of the plain
 * scalars only null, true, false and decimal integers of the YAML 1.2 core schema
 * have a type; everything else stays a string, 0.5 and 1/7 too (quantities are
 * parsed exactly, later), and so do yes, no, on, off, 0x10 and 007.  Integers of
 * more than 15 digits become strings of digits, which every decoder takes. */

enum { BH_YAML_KEYS_MAX = 256 };

/* Append `length` bytes of YAML to `ret_json` as one line of JSON.
 *
 * On failure `ret_json` is as it was, the message begins with the line, and the
 * result is
 *   BH_INVALID  not YAML, or outside the subset; the hint says what to write
 *   BH_FULL     larger than BH_JSON_BYTES_MAX, or `ret_json` has no room
 *   BH_RANGE    nested deeper than BH_JSON_DEPTH_MAX, or more than
 *               BH_YAML_KEYS_MAX keys in a mapping */
BH_MUST_USE bh_rc bh_yaml_to_json(const char *text, size_t length, struct bh_buf *ret_json,
                                  struct bh_err *err);

#endif
