// A thread of the library's own. Any floor may include this. No lock; the caller serialises start and join of one Thread.
#pragma once
#include <pthread.h>

namespace weft::os {

struct Thread {
    pthread_t id;
    void (*run)(void*);
    void* with;
};

// Starts `run(with)` in a thread that takes no signals: those are for the program's. False where there is none to be had. `t` stays
// where it is until join_thread().
bool start_thread(Thread& t, void (*run)(void*), void* with);
// Waits for its end.
void join_thread(Thread& t);

}  // namespace weft::os
