#include "boot/exchange.hpp"

#include <stdio.h>
#include <string.h>

#include "boot/protocol.hpp"
#include "os/env.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/shared_file.hpp"

namespace weft::boot {
namespace {

constexpr int cookie_digits = sizeof(Exchange::cookie) - 1;

struct Caller {
    char cookie[cookie_digits + 1];
    uint64_t cpus[os::cpu_words];
};

struct Handout {
    uint64_t id;
    int32_t cpus;
    int32_t bounded;
    unsigned char key[key_bytes];
};

bool choose_names(Exchange* m) {
    unsigned char random[cookie_digits / 2 + 12];
    if (!os::random_bytes(random, sizeof random)) return false;
    for (int i = 0; i < cookie_digits / 2; i++) snprintf(m->cookie + 2 * i, 3, "%02x", random[i]);
    int at = snprintf(m->name, sizeof m->name, "weft-");
    for (size_t i = cookie_digits / 2; i < sizeof random; i++)
        at += snprintf(m->name + at, sizeof m->name - size_t(at), "%02x", random[i]);
    os::node_identity(m->node, sizeof m->node);
    return true;
}

}  // namespace

int64_t time_limit_ms() {
    const int64_t seconds = os::env_int(env_launcher_timeout, 60);
    return seconds > 0 && seconds < 1 << 20 ? seconds * 1000 : 60'000;
}

Err open_exchange(Job* job, Exchange* m, char text[exchange_bytes]) {
    if (job->node_size > 1) {
        const os::SharedFile file = os::make_shared_file("weft");
        job->memfd = file.fd;   // -1 where memory cannot be shared: ranks use sockets then
        job->bounded = file.bounded;
    }
    if (!os::random_bytes(&job->id, sizeof job->id) || !os::random_bytes(job->key, sizeof job->key) || !choose_names(m))
        return fail(Err::other, "rank 0 gets no random numbers");
    m->listener = os::listen_abstract(m->name);
    if (m->listener < 0) return fail(Err::other, "rank 0 cannot make the socket for its peers");
    snprintf(text, exchange_bytes, "%s!%s!%s", m->node, m->name, m->cookie);
    return Err::ok;
}

void close_exchange(Exchange* m) { os::close_fd(&m->listener); }

Err hold_exchange(Job* job, Exchange* m) {
    uint64_t cpus[os::cpu_words];
    os::cpu_mask(cpus);
    // The peers' sockets, kept until all have come: only then is it known how many CPUs they have together.
    size_t bytes = size_t(job->size) * sizeof(int);
    int* peers = static_cast<int*>(os::map_private(bytes));
    if (!peers) return fail(Err::no_mem, "no memory for the sockets of %d ranks", job->size);
    int have = 0;
    while (have < job->size - 1) {
        // All ranks have passed the launcher's barrier, so the next one is on its way; first it asks the launcher.
        if (!os::wait_readable(m->listener, 2 * time_limit_ms())) break;
        int s = os::accept_one(m->listener);
        if (s < 0) break;
        Caller c;
        bool good = os::peer_is_same_user(s) && os::wait_readable(s, time_limit_ms()) &&
                    os::receive_message(s, &c, sizeof c, nullptr, 0) == int64_t(sizeof c) &&
                    memcmp(c.cookie, m->cookie, sizeof c.cookie) == 0;
        if (!good) {
            os::close_fd(&s);
            continue;
        }
        for (int i = 0; i < os::cpu_words; i++) cpus[i] |= c.cpus[i];
        peers[have++] = s;
    }
    bool all = have == job->size - 1;
    int together = 0;
    for (uint64_t word : cpus) together += __builtin_popcountll(word);
    job->cpus = together > 0 ? together : 1;
    Handout h{job->id, job->cpus, job->bounded, {}};
    memcpy(h.key, job->key, sizeof h.key);
    for (int i = 0; i < have; i++) {
        all = os::send_message(peers[i], &h, sizeof h, &job->memfd, job->memfd >= 0 ? 1 : 0) && all;
        os::close_fd(&peers[i]);
    }
    os::unmap(peers, bytes);
    return all ? Err::ok : fail(Err::other, "rank 0 could not give every rank what they need to meet: %d of %d others came, and no other for %lld s "
                                "(%s sets half that time)", have, job->size - 1, static_cast<long long>(time_limit_ms() / 500), env_launcher_timeout);
}

Err join_exchange(Job* job, const char* text) {
    Exchange m{};
    // Widths are the fields' sizes less their closing 0.
    if (sscanf(text, "%95[^!]!%47[^!]!%32[^!]", m.node, m.name, m.cookie) != 3)
        return fail(Err::other, "rank 0 published \"%.60s\", which is no place of Weft's; are all ranks the same program?", text);
    char here[sizeof m.node];
    os::node_identity(here, sizeof here);
    if (strcmp(here, m.node) != 0)
        return fail(Err::unsupported, "this process is not on rank 0's machine (or in another network namespace, or another user's); "
                    "this version of Weft runs on one machine");
    int s = os::connect_abstract(m.name);
    Caller c{};
    memcpy(c.cookie, m.cookie, sizeof c.cookie);
    os::cpu_mask(c.cpus);
    Handout h;
    bool good = s >= 0 && os::peer_is_same_user(s) && os::send_message(s, &c, sizeof c, nullptr, 0) && os::wait_readable(s, 4 * time_limit_ms()) &&
                os::receive_message(s, &h, sizeof h, &job->memfd, 1) == int64_t(sizeof h);
    os::close_fd(&s);
    if (!good)
        return fail(Err::other, "could not hear of the job from rank 0 within %lld s (%s sets a quarter of that time)",
                    static_cast<long long>(time_limit_ms() / 250), env_launcher_timeout);
    job->id = h.id;
    memcpy(job->key, h.key, sizeof job->key);
    job->cpus = h.cpus;
    job->bounded = h.bounded != 0;
    return Err::ok;
}

}  // namespace weft::boot
