// 8 bytes there and back between two processes: over the socket wire alone, below MPI, and over a bare pair of sockets of the same
// kind, in turns. Both look for the answer all the time.
// weft-bench-sock [--hops N] [-r N] [--cpus A,B] prints JSON lines like weft-bench-plain: microseconds for one way.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "os/process.hpp"
#include "plain.h"
#include "wire/sock/sock.hpp"

using namespace weft;
using wire::Cell;
using wire::Header;

namespace {

struct Plan {
    long hops = 20000;
    int reps = 11, cpus[2] = {0, 1};
};

struct Side {
    int self;
    bool yield;   // both share one CPU
    int socket;
    wire::sock::Sock wire;
    uint64_t token = 0;
};

[[noreturn]] void stop(const char* what) {
    perror(what);
    exit(1);
}

void bare_send(Side& s) {
    if (send(s.socket, &s.token, sizeof s.token, MSG_NOSIGNAL) < 0) stop("weft-bench-sock: send");
}
void bare_await(Side& s) {
    uint64_t got = 0;
    while (recv(s.socket, &got, sizeof got, MSG_DONTWAIT) != sizeof got || got != s.token)
        if (s.yield) sched_yield();
}

void wire_send(Side& s) {
    Cell* c;
    while ((c = s.wire.reserve(1 - s.self)) == nullptr) sched_yield();
    memcpy(c->payload, &s.token, sizeof s.token);
    s.wire.commit(1 - s.self, c, Header{1, sizeof s.token, 0, s.self, 0, 0});
}
struct Taker {
    uint64_t* got;
    bool take(uint64_t, const Cell& c) {
        memcpy(got, c.payload, sizeof *got);
        return true;
    }
    bool arrive(int, const Header&, const char*, const char*) { return true; }
};
void wire_await(Side& s) {
    uint64_t got = 0;
    while (!s.wire.poll(Taker{&got}))
        if (s.yield) sched_yield();
    if (got != s.token) stop("weft-bench-sock: another message than expected");
}

template <void (*send_it)(Side&), void (*await_it)(Side&)>
double one_way_us(Side& s, long hops) {
    const double start = now_s();
    for (long i = 0; i < hops / 2; i++) {
        s.token++;
        if (s.self == 0) send_it(s);
        await_it(s);
        if (s.self != 0) send_it(s);
    }
    return (now_s() - start) / double(hops) * 1e6;
}

void print(const char* test, const std::vector<double>& samples) {
    printf("{\"test\":\"%s\",\"bytes\":8,\"unit\":\"us\",\"samples\":[", test);
    for (size_t i = 0; i < samples.size(); i++) printf("%s%.9g", i ? "," : "", samples[i]);
    printf("]}\n");
}

void act(const Plan& p, Side& s, const wire::sock::Key& key) {
    pin("weft-bench-sock", p.cpus[s.self]);
    if (s.wire.open(key, 2, s.self) != Err::ok) stop(fail_text());
    std::vector<double> bare, wired;
    for (int i = -1; i < p.reps; i++) {  // one to warm up
        const double b = one_way_us<bare_send, bare_await>(s, p.hops), w = one_way_us<wire_send, wire_await>(s, p.hops);
        if (i >= 0) bare.push_back(b), wired.push_back(w);
    }
    s.wire.close();
    if (s.self != 0) return;
    print("socket", bare);
    print("wire/sock", wired);
}

}  // namespace

int main(int argc, char** argv) {
    Plan p;
    bool good = argc % 2 == 1;
    for (int i = 1; i + 1 < argc && good; i += 2) {
        if (strcmp(argv[i], "--hops") == 0) p.hops = atol(argv[i + 1]);
        else if (strcmp(argv[i], "-r") == 0) p.reps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--cpus") == 0) good = sscanf(argv[i + 1], "%d,%d", &p.cpus[0], &p.cpus[1]) == 2;
        else good = false;
    }
    if (!good || p.hops < 2 || p.reps < 1) {
        fprintf(stderr, "usage: weft-bench-sock [--hops N] [-r N] [--cpus A,B]\n");
        return 2;
    }
    wire::sock::Key key;
    int sockets[2];
    if (!os::random_bytes(&key, sizeof key) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) stop("weft-bench-sock");
    const pid_t parent = getpid(), child = fork();
    if (child < 0) stop("weft-bench-sock: fork");
    Side s{child == 0, p.cpus[0] == p.cpus[1], sockets[child == 0], {}};
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    act(p, s, key);
    int status = 0;
    return child != 0 && (waitpid(child, &status, 0) != child || status != 0);
}
