// Sockets that a wire reads and writes: nothing here waits, except wait_for_any(); and descriptors to sleep on.
// wire/ and the floors above it may include this; it holds no lock, and every function is safe in any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::os {

// One message. `later`: the kernel has no room for it; `over`: nobody will ever read it (never raises SIGPIPE).
enum class Sent : uint8_t { whole, later, over };
Sent send_now(int sock, const void* data, size_t bytes);
// One message, cut to `bytes`. Its bytes; 0 when none is there, -1 when none will come. What the other side sent before it
// closed comes first, also where it left something unread.
int64_t receive_now(int sock, void* data, size_t bytes);
// What the kernel counts for messages that were sent and not yet read, and how much of that it allows: it takes a message of any
// size while it counts less. unread_bytes() is -1 where the system does not say.
int64_t unread_bytes(int sock);
int64_t ask_for_buffer(int sock, int64_t least);  // the size after asking for at least that much
// The next caller; -1 and errno when there is none (EAGAIN) or it cannot be had.
int accept_now(int listener);
bool set_nonblocking(int fd);
// Lets this process open as many files as it may; false where it could already.
bool raise_descriptor_limit();

// A descriptor that tells which of many others have news. Each arrival is told once, to one call of take_news().
int make_watch();
enum class News : uint8_t { readable, writable };
bool watch(int watcher, int fd, News, void* tag);
void unwatch(int watcher, int fd);
int take_news(int watcher, void** tags, int most);
// Whether there are any. Takes none.
bool has_news(int watcher);

// A descriptor that is readable from ring_event() until clear_event().
int make_event();
void ring_event(int event);
void clear_event(int event);
// Sleeps until one of the three is readable, at most `timeout_us`; negative ones are ignored. May return early; the caller looks again.
void wait_for_any(int a, int b, int c, uint32_t timeout_us);

}  // namespace weft::os
