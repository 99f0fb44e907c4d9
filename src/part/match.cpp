// Setups: what a sender tells its receiver when it is made. Receivers take them in the order in which they were made, as if they had been
// matched then. See channel.hpp for who may call what.
#include "p2p/p2p.hpp"
#include "part/channel.hpp"

namespace weft::part {

namespace {

// The receiver whose turn it is for a setup: the first made for that peer and tag that has none yet.
Channel* claim(Engine& e, const Channel& lander) {
    SpinGuard guard(e.lock);
    for (Channel* c = e.first; c != nullptr; c = c->next)
        if (!c->sending && !c->matched.load(std::memory_order_relaxed) && c->comm == lander.comm && c->peer == lander.peer &&
            c->tag == lander.incoming.tag) {
            c->setup = lander.incoming;
            c->matched.store(true, std::memory_order_release);  // pairs with drive()
            return c;
        }
    return nullptr;
}

// The first receiver whose setup has come, and before which no other waits for one in the same envelope: receives take
// messages in the order in which they were posted, so setups are given out in that order too.
Channel* landed(Engine& e) {
    SpinGuard guard(e.lock);
    for (Channel* c = e.first; c != nullptr; c = c->next) {
        Request* r = c->sending ? nullptr : c->setup_request.load(std::memory_order_relaxed);
        if (r == nullptr || !r->done()) continue;
        bool first = true;
        for (Channel* d = e.first; d != c && first; d = d->next)
            first = d->sending || d->comm != c->comm || d->peer != c->peer || setup_tag(d->tag) != setup_tag(c->tag) ||
                    d->setup_request.load(std::memory_order_relaxed) == nullptr;
        if (first) return c;
    }
    return nullptr;
}

}  // namespace

// Gives out the setups that have come. A channel is kept while its setup is awaited, so `c` stays.
bool take_setups(Engine& e) {
    bool moved = false;
    if (e.matching.exchange(1, std::memory_order_acquire) != 0) return false;
    while (Channel* c = landed(e)) {
        (void)p2p::finish(*c->process, *c->setup_request.load(std::memory_order_relaxed), nullptr);
        claim(e, *c);
        c->setup_request.store(nullptr, std::memory_order_release);  // pairs with drive()
        moved = true;
    }
    e.matching.store(0, std::memory_order_release);
    return moved;
}

// The sender's setup has left.
bool setup_left(Channel& c) {
    Request* r = c.setup_request.load(std::memory_order_relaxed);
    if (r == nullptr || !r->done()) return false;
    note(c, p2p::finish(*c.process, *r, nullptr));
    c.setup_request.store(nullptr, std::memory_order_relaxed);
    return true;
}

}  // namespace weft::part
