// A rank starts another MPI program: it is a singleton, with one warning, and does not disturb the rank's place in the job.
#include <fcntl.h>

#include "check.h"

int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "singleton")) {
        start(&argc, &argv);
        if (size != 1 || rank != 0) return 50;
        int in = 0, out = 4;
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Finalize();
        return in == 4 ? 0 : 51;
    }
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        int pipes[2];
        CHECK(pipe(pipes) == 0, "no pipe");
        const pid_t child = fork();
        CHECK(child >= 0, "no fork");
        if (child == 0) {
            dup2(pipes[1], 2);
            close(pipes[0]);
            close(pipes[1]);
            // Once with every inherited descriptor closed, as many programs do.
            if (round == 1)
                for (int fd = 3; fd < 256; fd++) close(fd);
            execl("/proc/self/exe", argv[0], "singleton", (char*)NULL);
            _exit(60);
        }
        close(pipes[1]);
        char text[8000];
        const int status = read_child(child, pipes[0], text, sizeof text);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x: %s", (unsigned)status, text);
        int lines = 0;
        for (const char* p = text; *p; p++) lines += *p == '\n';
        CHECK(lines == 1 && strstr(text, "alone") != NULL, "%d lines of warning: \"%s\"", lines, text);
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size, "%d of %d ranks", sum, size);
    }
    return finish();
}
