// A forked child of a rank: its memory is its own, MPI calls there end in a clear error, and the job does not notice.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    char* kept = malloc(100000);
    memset(kept, 7, 100000);
    int pipes[2];
    CHECK(pipe(pipes) == 0, "no pipe");
    const pid_t child = fork();
    CHECK(child >= 0, "no fork");
    if (child == 0) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        close(pipes[1]);
        for (int i = 0; i < 100000; i++)
            if (kept[i] != 7) _exit(90);
        memset(kept, 8, 100000);
        free(kept);
        MPI_Barrier(MPI_COMM_WORLD);  // must not come back, nor hang
        _exit(0);
    }
    close(pipes[1]);
    char text[4000];
    const int status = read_child(child, pipes[0], text, sizeof text);
    CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 90), "the child lost its memory");
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "an MPI call in a forked child succeeded");
    CHECK(!WIFSIGNALED(status) || (WTERMSIG(status) != SIGSEGV && WTERMSIG(status) != SIGBUS), "an MPI call in a forked child crashed with signal %d", WTERMSIG(status));
    CHECK(strstr(text, "fork") != NULL, "the message does not say why: \"%s\"", text);
    for (int i = 0; i < 100000; i++) CHECK(kept[i] == 7, "the child wrote into the parent's memory");
    free(kept);
    // Everybody is still there.
    char* big = malloc(200000);
    for (int i = 0; i < 50; i++) {
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size, "%d of %d ranks", sum, size);
        MPI_Sendrecv_replace(big, 200000, MPI_BYTE, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(big);
    return finish();
}
