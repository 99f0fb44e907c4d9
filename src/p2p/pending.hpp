// What this rank waits for, as text: the answer to mpiexec when a job reaches its time limit. Included by p2p/progress.hpp.
// Takes the lanes' guards itself, one after the other, and reports with no lock held.
#pragma once
#include "obj/process.hpp"

namespace weft::p2p {

// mpiexec asks all ranks what they wait for when a job reaches its time limit. If it has asked, answers for this thread, which has
// waited for `waited_ns` (in one call, or `again`: in many); the first thread also lists all that is pending. True if it answered.
WEFT_COLD bool tell_if_asked(obj::Process&, uint64_t waited_ns, const obj::Request* blocking, bool again = false);

// While an object of this class lives, tell_if_asked() reports that this thread probes for such a message.
class Probing {
public:
    template <class Envelope>
    Probing(const obj::Comm& c, const Envelope& e) : comm(&c), rank(e.rank), tag(e.tag), collective(e.coll == obj::Request::coll), before_(now) { now = this; }
    ~Probing() { now = before_; }
    Probing(const Probing&) = delete;
    Probing& operator=(const Probing&) = delete;
    const obj::Comm* comm;
    int32_t rank, tag;
    bool collective;
    static thread_local constinit const Probing* now;

private:
    const Probing* before_;
};

// The same for a thread that waits, without a message, for another member of a communicator to come to a collective.
class AwaitingMember {
public:
    AwaitingMember(const obj::Comm& c, const int32_t& member) : comm(c), rank(member), before_(now) { now = this; }
    ~AwaitingMember() { now = before_; }
    AwaitingMember(const AwaitingMember&) = delete;
    AwaitingMember& operator=(const AwaitingMember&) = delete;
    const obj::Comm& comm;
    const int32_t& rank;   // changes while the thread waits
    static thread_local constinit const AwaitingMember* now;

private:
    const AwaitingMember* before_;
};

}  // namespace weft::p2p
