#ifndef BH_WEB_FRAME_H
#define BH_WEB_FRAME_H

#include "base/time.h"
#include "web/html.h"

/* What all pages have in common, and the parts that forms are made of. */

enum bh_notice {
#define BH_NOTICE(code, name, tone, sentence) BH_NOTICE_##code,
#include "tables/notices.tbl"
#undef BH_NOTICE
    BH_NOTICES
};

/* "refused"; never NULL.  The notice of that name, BH_NOTICE_NONE when there is none:
 * names may come in a query, sentences never do. */
const char *bh_notice_name(enum bh_notice notice);
enum bh_notice bh_notice_find(const char *name);

/* The parts of the navigation. */
enum bh_section {
    BH_SECTION_NONE, /* a page that belongs to none of them */
#define BH_SECTION(section, path, title, verb) BH_SECTION_##section,
#include "tables/sections.tbl"
#undef BH_SECTION
    BH_SECTIONS
};

/* Texts are shown as they are, escaped. */
struct bh_page_frame {
    const char *title;
    const char *site;    /* the site's name, in the header */
    const char *account; /* who is signed in; NULL: not signed in */
    const char *csrf;    /* token for every form of the page; NULL where there is none */
    enum bh_notice notice;
    bool passkeys; /* the page needs passkey.js */
    bool proofs;   /* the page needs proof.js */
    bool live;     /* it has panels that live.js keeps up to date */
    bool times;    /* it has moments, which live.js shows in the reader's zone */
    bh_ns now;     /* the server's clock, by which live.js knows today; 0: left out */
    bool log;      /* it has output that log.js follows */
    bool charts;   /* it has samples over time, which charts.js draws */
    enum bh_section section;
    uint32_t sees; /* bits of the sections that the caller may see; 0: no navigation */
    bool narrow;   /* it is for reading, not for tables */
};

/* Write everything up to the page's own part, which lies within <main>, and what follows
 * it. */
struct bh_html bh_frame_begin(struct bh_buf *out, const struct bh_page_frame *frame);
void bh_frame_end(struct bh_html *html, const struct bh_page_frame *frame);

/* Open a form that is posted to `action`, with the token in it; close it with
 * bh_html_close. */
void bh_frame_form(struct bh_html *html, const struct bh_page_frame *frame, const char *action);

/* Open a form that asks `action` with its fields in the address: a search, which needs no token. */
void bh_frame_search(struct bh_html *html, const char *action);

/* The same for passkey.js: hidden until the script shows it, with the line where it says
 * how it goes, and the field for the answer.  `kind` is "create" or "get". */
void bh_frame_passkey_form(struct bh_html *html, const struct bh_page_frame *frame, const char *kind,
                           const char *action, const char *options);

void bh_frame_hidden(struct bh_html *html, const char *name, const char *value);

/* An input under its label.  NULL and false leave an attribute out. */
struct bh_input {
    const char *id, *label, *name;
    const char *type;         /* "text", "password" */
    const char *autocomplete; /* WHATWG's autofill names: "username", "one-time-code" */
    const char *inputmode;    /* "numeric" */
    const char *value;
    const char *hint; /* id of an element that says more */
    uint32_t length_max;
    bool focus, optional;
};
void bh_frame_input(struct bh_html *html, const struct bh_input *input);

/* A choice of one, under its label. */
struct bh_select {
    const char *id, *label, *name;
    const char *value; /* which is chosen */
    const char *hint;  /* as in struct bh_input */
    const char *empty; /* how the choice of none is called; NULL: there is no such choice */
    const char *const *values;
    const char *const *labels; /* NULL: the values themselves */
    uint32_t count;
};
void bh_frame_select(struct bh_html *html, const struct bh_select *select);

/* Text of several lines, under its label. */
struct bh_textarea {
    const char *id, *label, *name, *value, *hint;
    uint32_t rows;
};
void bh_frame_textarea(struct bh_html *html, const struct bh_textarea *textarea);

/* A box to tick, with its label behind it. */
struct bh_checkbox {
    const char *id, *label, *name;
    bool checked;
};
void bh_frame_checkbox(struct bh_html *html, const struct bh_checkbox *checkbox);

/* A button that sends the form; `look` is NULL, "plain" or "grave". */
void bh_frame_button(struct bh_html *html, const char *style, const char *label);

/* A form of one button that posts one value: revoke, remove, end.  `about` says to screen
 * readers what the button is for, as there are several of a kind. */
struct bh_button_form {
    const char *action, *name, *value, *label, *about;
};
void bh_frame_button_form(struct bh_html *html, const struct bh_page_frame *frame,
                          const struct bh_button_form *button);

#endif
