#ifndef BH_CLI_OUTPUT_OUTPUT_H
#define BH_CLI_OUTPUT_OUTPUT_H

#include "base/buf.h"
#include "base/json.h"

enum { BH_OUTPUT_MAX = 64 << 20 };

/* JSON and YAML for readers: indented, in the order that the server chose.  Each
 * document ends with a newline. */
void bh_output_json(struct bh_buf *out, bh_json_value value);

/* The subset of YAML that base/yaml.h reads: what it prints can be applied again. */
void bh_output_yaml(struct bh_buf *out, bh_json_value value);

/* A list that comes page by page, as one document: begin, each item, end with what the last page says
 * beside its items. */
struct bh_output_list {
    struct bh_buf *out;
    bool yaml;
    size_t count;
};
void bh_output_list_begin(struct bh_output_list *list, struct bh_buf *out, bool yaml);
void bh_output_list_item(struct bh_output_list *list, bh_json_value item);
void bh_output_list_end(struct bh_output_list *list, bh_json_value page);

/* Write what was collected to standard output, with '?' for what is not shown (base/utf8.h): JSON
 * and YAML from here have it escaped.  BH_IO, also for a closed pipe. */
BH_MUST_USE bh_rc bh_output_write(struct bh_buf *out, struct bh_err *err);

#endif
