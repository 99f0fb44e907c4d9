// A rank in miniature: attaches by boot.hpp, prints what it got, and then does what its arguments say.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "boot/boot.hpp"
#include "boot/locality.hpp"

using namespace weft;

// What the ranks share in the node's segment.
struct Shared {
    int arrived;
    pid_t pids[1000];
};

static Shared* shared(const boot::Job& job) {
    if (ftruncate(job.memfd, 4096) != 0) exit(90);
    void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, job.memfd, 0);
    if (p == MAP_FAILED) exit(91);
    return static_cast<Shared*>(p);
}

static void barrier(const boot::Job& job) {
    if (job.memfd < 0) return;
    Shared* s = shared(job);
    s->pids[job.rank] = getpid();
    int goal = (__atomic_fetch_add(&s->arrived, 1, __ATOMIC_SEQ_CST) / job.node_size + 1) * job.node_size;
    while (__atomic_load_n(&s->arrived, __ATOMIC_SEQ_CST) < goal) usleep(200);
    munmap(s, 4096);
}

static std::string info(const char* key) {
    char text[boot::launch_info_bytes];
    int bytes = boot::launch_info(text);
    for (int i = 0; i < bytes;) {
        const char* k = text + i;
        const char* v = k + strlen(k) + 1;
        if (strcmp(k, key) == 0) return v;
        i = int(v + strlen(v) + 1 - text);
    }
    return "-";
}

// Words: attach key finalize detach barrier locality info exit=N run=COMMAND sleep=S kill=SIGNAL shoot=R abort=N fail=N say=TEXT err=TEXT; `@R` before a word: rank R only.
int main(int argc, char** argv) {
    static boot::Job job;
    const char* env_rank = getenv(getenv("WEFT_RANK_OF_TEST") ? "WEFT_RANK_OF_TEST" : "WEFT_RANK");
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        if (word[0] == '@') {
            size_t colon = word.find(':');
            std::string rank = env_rank ? env_rank : std::to_string(job.rank);
            if (word.substr(1, colon - 1) != rank) continue;
            word = word.substr(colon + 1);
        }
        std::string value = word.find('=') == std::string::npos ? "" : word.substr(word.find('=') + 1);
        std::string name = word.substr(0, word.find('='));
        if (name == "attach") {
            if (boot::attach(&job) != Err::ok) {
                fprintf(stderr, "probe: %s\n", fail_text());
                return 77;
            }
            printf("rank=%d size=%d appnum=%d universe=%d generation=%d cpus=%d singleton=%d pid=%d\n", job.rank, job.size,
                   job.appnum, job.universe_size, job.generation, job.cpus, job.singleton, int(getpid()));
        }
        else if (name == "key") {
            printf("key=");
            for (unsigned char c : job.key) printf("%02x", c);
            printf("\n");
        }
        else if (name == "finalize") boot::finalized(&job);
        else if (name == "detach") boot::detach(&job);
        else if (name == "barrier") barrier(job);
        else if (name == "locality") {
            // Of every rank that it knows: package, NUMA node, L3 cache, core, thread.
            for (int r = 0; r < (job.localities ? job.size : 1); r++) {
                boot::Locality locality = job.localities ? job.localities[r] : boot::own_locality(&job);
                printf("locality");
                for (int level = boot::package; level < boot::levels; level++) printf(" %d", locality.at[level]);
                printf("\n");
            }
        }
        else if (name == "info") printf("%s=%s\n", value.c_str(), info(value.c_str()).c_str());
        else if (name == "exit") return atoi(value.c_str());
        else if (name == "run") {
            if (system(value.c_str()) != 0) return 98;
        }
        else if (name == "sleep") usleep(useconds_t(atof(value.c_str()) * 1e6));
        else if (name == "kill") {
            signal(atoi(value.c_str()), SIG_DFL);  // a sanitizer may have taken it
            raise(atoi(value.c_str()));
        }
        else if (name == "shoot") kill(shared(job)->pids[atoi(value.c_str())], SIGKILL);
        else if (name == "fail") boot::abort(&job, atoi(value.c_str()), "MPI_Recv: the probe was told to", boot::Cause::error);
        else if (name == "abort") boot::abort(&job, atoi(value.c_str()), "the probe was told to");
        else if (name == "say") printf("%s\n", value.c_str());
        else if (name == "err") fprintf(stderr, "%s\n", value.c_str());
        else return 99;
        fflush(stdout);
    }
    return 0;
}
