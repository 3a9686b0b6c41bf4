/* Tests only: a job of more processes than any list of them was made for.  The youngest
 * has a context on the simulated GPU. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = 4200 };

static void
use_gpu(void)
{
    int fd = open("/run/bulkhead-sim/view/memory", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && mmap(NULL, 64 << 20, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
        puts("mapped");
    fflush(stdout);
    pause();
}

int
main(void)
{
    for (int i = 0; i < MANY; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return 1;
        if (pid == 0) {
            pause();
            return 0;
        }
    }
    if (fork() == 0)
        use_gpu();
    pause();
    return 0;
}
