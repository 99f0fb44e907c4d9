// How ranks under a foreign launcher come to share the node's segment: rank 0 publishes a local socket by the launcher's means,
// all pass the launcher's barrier, the others call there. boot/ alone includes this; it holds no lock.
// The socket's name is random, both ends check that the other belongs to the same user, and callers show a published cookie.
#pragma once
#include "boot/boot.hpp"

namespace weft::boot {

inline constexpr char exchange_key[] = "weft-meeting";
inline constexpr size_t exchange_bytes = 192;  // of the published text, which holds no blanks

// How long what is on its way may take, in milliseconds: an answer that depends on one other process alone.
int64_t time_limit_ms();

struct Exchange {
    char node[96];
    char name[48];
    char cookie[33];
    int listener = -1;
};

// Rank 0: makes the segment and the socket, and writes the text to publish.
Err open_exchange(Job* job, Exchange* m, char text[exchange_bytes]);
// Rank 0: waits for all others and gives each the segment.
Err hold_exchange(Job* job, Exchange* m);
// The others.
Err join_exchange(Job* job, const char* text);
// Ends the waiting of those who might still come.
void close_exchange(Exchange* m);

// `Launcher` offers publish(text), barrier() and look_up(text, bytes).
template <class Launcher>
Err meet(Job* job, Launcher& launcher) {
    char text[exchange_bytes];
    if (job->rank != 0) {
        WEFT_TRY(launcher.barrier());
        WEFT_TRY(launcher.look_up(text, sizeof text));
        return join_exchange(job, text);
    }
    Exchange m;
    Err e = open_exchange(job, &m, text);
    if (e == Err::ok) e = launcher.publish(text);
    if (e == Err::ok) e = launcher.barrier();
    if (e == Err::ok) e = hold_exchange(job, &m);
    close_exchange(&m);
    return e;
}

}  // namespace weft::boot
