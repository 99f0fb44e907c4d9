#include "os/thread.hpp"

#include <signal.h>

namespace weft::os {

namespace {

void* body(void* thread) {
    const auto* t = static_cast<Thread*>(thread);
    t->run(t->with);
    return nullptr;
}

}  // namespace

bool start_thread(Thread& t, void (*run)(void*), void* with) {
    sigset_t all, before;
    t = {{}, run, with};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);   // which the new thread inherits
    const bool started = pthread_create(&t.id, nullptr, body, &t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

void join_thread(Thread& t) { pthread_join(t.id, nullptr); }

}  // namespace weft::os
