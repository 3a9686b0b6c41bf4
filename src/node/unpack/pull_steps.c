#include "node/unpack/pull_steps.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "node/common/path.h"
#include "node/unpack/pull.h"
#include "node/unpack/unpack_sandbox.h"

#define MANIFEST BH_PULL_FOLDER "/manifest"
#define LOG BH_PULL_FOLDER "/log"
#define BLOBS BH_PULL_FOLDER "/blobs/sha256"

enum { WORDS_MAX = 24, IMAGE_MAX = 640, LOG_TAIL = 1000, SAID_MAX = 200 };

static int
pull_fail(struct bh_unpack_order *order, bh_rc rc)
{
    order->shared->rc = rc;
    return rc != BH_OK;
}

/* ---- skopeo ---- */

struct steps_command {
    const char *words[WORDS_MAX + 1];
    uint32_t count;
};

static void
pull_steps_add(struct steps_command *command, const char *word)
{
    if (command->count < WORDS_MAX)
        command->words[command->count++] = word;
}

/* By digest as soon as one is known. */
static void
steps_name_image(const struct bh_unpack_order *order, char ret_image[IMAGE_MAX])
{
    const char *digest = order->shared->manifest.digest;

    digest = digest[0] ? digest : order->digest;
    if (digest[0])
        bh_path_format(ret_image, IMAGE_MAX, "docker://%.400s@sha256:%.64s", order->pull->source, digest);
    else
        bh_path_format(ret_image, IMAGE_MAX, "docker://%.400s:%.130s", order->pull->source, order->tag);
}

/* Its output goes to a file, and it gets no descriptor but those of its own. */
static int
pull_steps_become(struct steps_command *command, const char *output)
{
    static const char *const env[] = { "PATH=/usr/bin:/bin",
                                       "HOME=" BH_PULL_FOLDER "/tmp",
                                       "TMPDIR=" BH_PULL_FOLDER "/tmp",
                                       "XDG_RUNTIME_DIR=" BH_PULL_FOLDER "/tmp",
                                       "SSL_CERT_FILE=" BH_PULL_CERTIFICATES,
                                       "SSL_CERT_DIR=/nowhere",
                                       NULL };
    int log = open(LOG, O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
    int out = open(output, O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
    struct bh_process_options options = {
        .program = BH_UNPACK_SANDBOX_FETCHER,
        .argv = command->words,
        .envp = env,
        .fds = { { STDIN_FILENO, log }, { STDOUT_FILENO, out }, { STDERR_FILENO, log } },
        .fd_count = 3,
    };

    command->words[command->count] = NULL;
    (void)!bh_process_become(&options);
    return EXIT_FAILURE;
}

int
bh_pull_step_inspect(void *self)
{
    const struct bh_unpack_order *order = self;
    struct steps_command command = { { "skopeo", "--insecure-policy", "inspect", "--raw" }, 4 };
    char image[IMAGE_MAX];

    steps_name_image(order, image);
    pull_steps_add(&command, order->pull->hosts[0].plain ? "--tls-verify=false" : "--tls-verify=true");
    pull_steps_add(&command, *order->pull->auth ? "--authfile" : "--no-creds");
    if (*order->pull->auth)
        pull_steps_add(&command, BH_PULL_AUTH);
    pull_steps_add(&command, image);
    return pull_steps_become(&command, MANIFEST);
}

int
bh_pull_step_copy(void *self)
{
    const struct bh_unpack_order *order = self;
    struct steps_command command = {
        { "skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests" }, 5
    };
    char image[IMAGE_MAX];

    steps_name_image(order, image);
    pull_steps_add(&command,
                   order->pull->hosts[0].plain ? "--src-tls-verify=false" : "--src-tls-verify=true");
    pull_steps_add(&command, *order->pull->auth ? "--src-authfile" : "--src-no-creds");
    if (*order->pull->auth)
        pull_steps_add(&command, BH_PULL_AUTH);
    pull_steps_add(&command, image);
    pull_steps_add(&command, "dir:" BLOBS);
    return pull_steps_become(&command, LOG);
}

/* ---- what it said ---- */

/* skopeo's causes for which there is a remedy. */
#define SENT "the registry redirected there; registry_hosts in node.conf lists the allowed hosts"

static const struct {
    const char *word;
    bh_rc rc;
    const char *message, *hint;
} causes[] = {
    { "no space left", BH_FULL, "no space left on the disk", NULL },
    { "manifest unknown", BH_NOT_FOUND, "the registry has no such image", NULL },
    { "name unknown", BH_NOT_FOUND, "the registry has no such repository", NULL },
    { "unauthorized", BH_DENIED, "the registry needs different credentials",
      "registry_auth in node.conf names the file with credentials" },
    { "denied", BH_DENIED, "the registry refuses it",
      "registry_auth in node.conf names the file with credentials" },
    { "no such host", BH_DENIED, NULL, SENT },
    { "no suitable address", BH_DENIED, NULL, SENT },
    { "network is unreachable", BH_DENIED, NULL, SENT },
    { "connection refused", BH_DENIED, NULL, SENT },
    { "certificate", BH_DENIED, NULL,
      "the node trusts the authorities in /etc/ssl/certs/ca-certificates.crt" },
    { "did not match", BH_INVALID, "a blob has a different digest than in its manifest", NULL },
};

/* Of `time="..." level=fatal msg="..."` the message, from behind the image's name on, where it
 * says that first; of other programs' lines all. */
static const char *
steps_message_of(char *line)
{
    char *message = strstr(line, "msg=\""), *behind;

    if (!message)
        return line;
    message += strlen("msg=\"");
    for (char *from = message, *to = message;; from++) {
        from += from[0] == '\\' && from[1];
        *to++ = *from;
        if (!*from)
            break;
    }
    behind = message + strlen(message);
    if (behind > message && behind[-1] == '"')
        behind[-1] = '\0';
    behind = strncmp(message, "Error parsing image name", 24) == 0 ? strstr(message, "\": ") : NULL;
    return behind ? behind + 3 : message;
}

/* What a registry said goes to a user's terminal. */
static void
steps_scrub(char *text)
{
    for (; *text; text++)
        if (!isprint((unsigned char)*text))
            *text = '?';
}

static char *
steps_last_line(char *tail, ssize_t length)
{
    char *line;

    while (length > 0 && (tail[length - 1] == '\n' || tail[length - 1] == ' '))
        length--;
    tail[length > 0 ? length : 0] = '\0';
    line = strrchr(tail, '\n');
    return line ? line + 1 : tail;
}

/* A host that could not be reached is the relay's to say. */
int
bh_pull_step_explain(void *self)
{
    struct bh_unpack_order *order = self;
    struct bh_err *err = &order->shared->err;
    BH_AUTO(bh_fd_close)
    int fd = open(LOG, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char tail[LOG_TAIL + 1];
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    ssize_t n = size > 0 ? pread(fd, tail, LOG_TAIL, size > LOG_TAIL ? size - LOG_TAIL : 0) : 0;
    char *line = steps_last_line(tail, n);
    const char *said = steps_message_of(line);

    steps_scrub(line);
    for (size_t i = 0; i < BH_COUNT(causes); i++) {
        if (!strcasestr(said, causes[i].word))
            continue;
        bh_err_set(err, causes[i].rc, "%.*s", SAID_MAX, causes[i].message ? causes[i].message : said);
        return pull_fail(order, causes[i].hint ? bh_err_hint(err, "%s", causes[i].hint) : err->rc);
    }
    return pull_fail(
        order, bh_err_set(err, BH_UNAVAILABLE, "skopeo: %.*s", SAID_MAX, *said ? said : "it does not run"));
}

/* ---- the manifest ---- */

static bh_rc
steps_read_manifest(struct bh_unpack_order *order, const struct bh_buf *text, struct bh_err *err)
{
    struct bh_image_blob *blob = &order->shared->manifest;
    const char *wanted = blob->digest[0] ? blob->digest : order->digest;
    static struct bh_image_manifest manifest;
    char hex[BH_IMAGE_HEX];
    uint8_t digest[32];
    bool index;
    bh_rc rc;

    order->layout.crypto->sha256(text->bytes, text->length, NULL, 0, digest);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    if (wanted[0] && strcmp(hex, wanted) != 0)
        return bh_err_set(err, BH_INVALID,
                          "the registry sent a manifest with a different digest, sha256:%.19s...", hex);
    rc = bh_image_is_index(text, &index, err);
    if (rc != BH_OK || index)
        return rc == BH_OK ? bh_image_find_platform(text, blob, err) : rc;
    rc = bh_image_read_manifest(text, &manifest, err);
    if (rc != BH_OK)
        return rc;
    *blob = (struct bh_image_blob){ .media = BH_MEDIA_MANIFEST, .bytes = text->length };
    memcpy(blob->digest, hex, sizeof blob->digest);
    order->shared->total_bytes = manifest.config.bytes;
    for (uint32_t i = 0; i < manifest.layer_count; i++)
        order->shared->total_bytes += manifest.layers[i].bytes;
    order->shared->resolved = true;
    return BH_OK;
}

int
bh_pull_step_read(void *self)
{
    struct bh_unpack_order *order = self;
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    rc = bh_file_read(MANIFEST, BH_IMAGE_DOCUMENT_MAX - 1, &text, &order->shared->err);
    if (rc == BH_OK)
        rc = steps_read_manifest(order, &text, &order->shared->err);
    bh_buf_fini(&text);
    return pull_fail(order, rc);
}

int
bh_pull_step_store(void *self)
{
    struct bh_unpack_order *order = self;
    char path[128];

    bh_path_format(path, sizeof path, BLOBS "/%s", order->shared->manifest.digest);
    return pull_fail(
        order, rename(MANIFEST, path) == 0 ? BH_OK : bh_err_errno(&order->shared->err, "store the manifest"));
}
