#include "lane/lane.hpp"

#include <cstdlib>

#include "os/clock.hpp"

namespace weft::lane {

Err Lane::open(char* segment_base, int ranks, int me, bool can_fence) {
    for (Ring2& b : unexpected) b.make_head();
    unexpected_all.make_head();
    self = me;
    ways.start(limits.attach ? limits.large : Ways::pieces);
    peers = static_cast<Peer*>(calloc(static_cast<size_t>(ranks) + 1, sizeof(Peer)));
    if (peers == nullptr) return fail(Err::no_mem, "no memory for the state of %d peers", ranks);
    for (uint32_t i = 0; i < wire::shm::transfers_per_rank; ++i)
        transfers_free[i] = static_cast<uint16_t>(wire::shm::transfers_per_rank - 1 - i);
    transfers_free_count = wire::shm::transfers_per_rank;
    if (segment_base == nullptr) return Err::ok;
    WEFT_TRY(shm.open(segment_base, ranks, me, can_fence, limits.take));
    shm.want_unasked(ways.unasked());
    return Err::ok;
}

void Lane::close() {
    if (shm.ranks > 0) shm.close();
    free(peers);
    peers = nullptr;
    free(null);
    null = nullptr;
}

Idler::Next Idler::idle() {
    ++polls_;
    if (polls_ < lane_.limits.spin_polls) {
        os::pause_cpu();
        return Next::poll;
    }
    if (polls_ % 32 == 0 || polls_ <= lane_.limits.spin_polls + 1) {
        now_ns_ = os::now_ns();
        if (began_ns_ == 0) began_ns_ = listened_ns_ = now_ns_;
        if (now_ns_ - listened_ns_ >= listen_ns) {
            listened_ns_ = now_ns_;
            return Next::listen;
        }
        if (polls_ <= lane_.limits.spin_polls + 1) since_ns_ = now_ns_;
        else if (now_ns_ - since_ns_ >= lane_.limits.sleep_ns) return Next::sleep;
    }
    os::yield_cpu();
    return Next::poll;
}

}  // namespace weft::lane
