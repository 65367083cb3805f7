// The ring: launches through memory that a client and its worker share, without a system call while both are
// busy.
//
// One memfd a session: a header and 64 slots. A slot is one launch in flight. There are no queues and no
// shared indices; a slot's `word` says whose turn it is, and the other side leaves the slot alone:
//
//   free ──client──> posted ──worker──> taken ──worker──> done ──client──> free
//            client <──┘                  ├──worker──> host_call ──client──> replied ──worker──> taken
//
// Who leaves a state that the other side may leave, too, exchanges the word: a client may take back what is
// still posted (it was cancelled before it began), and a launch that is cancelled while its host call is open
// goes from host_call or replied to done.
//
// A slot is a launch, or new numbers for a graph's Params (`kind`). A worker that would have long to look for
// those answers that its text was cut, and the client goes over gRPC. While the daemon is being exchanged
// (`closing`) a launch is answered with SHUTTING_DOWN, and was not begun; one that was enqueued is taken, and
// clients enqueue over gRPC.
//
// Both sides write fields first and the word afterwards. A client that waits in the kernel sets `sleeping`
// and waits for the word (a futex); a worker that may be asleep has set the header's `asleep`, and the client
// then writes to the session's eventfd.
//
// The worker trusts nothing in here: it copies a request, checks the copy, and keeps in its own memory which
// slots it has taken. Whoever scribbles on a ring spoils launches of that session, and nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace eagle::ring {

inline constexpr std::uint64_t magic = 0x32'47'4e'49'52'4c'47'45;  // "EGLRING2", little-endian
inline constexpr std::size_t slot_count = 64;
inline constexpr std::size_t most_iterations = 32;  // a graph with more loops is launched over gRPC
inline constexpr std::size_t text_bytes = 424;      // of a launch's error
inline constexpr std::size_t reply_bytes = 128;     // of a host call's error, which is for logs

enum class Kind : std::uint64_t { launch = 0, update = 1, enqueued = 2 };

enum class State : std::uint32_t { free = 0, posted = 1, host_call = 2, replied = 3, done = 4, taken = 5 };

// Fields are atomics because the other side may write at any time, whatever it promised; they are read and
// written relaxed, and the word orders them.
template <typename T>
class Cell {
public:
  [[nodiscard]] T get() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }

private:
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
  std::atomic<T> value_{};
};

// The longest beginning of a text that has at most so many bytes and ends with a whole UTF-8 character.
std::string_view cut(std::string_view text, std::size_t most);

// A text of at most `most` bytes, a multiple of 8.
template <std::size_t most>
class Text {
public:
  void set(std::string_view text) { set_bytes(cut(text, most)); }
  // At most `most`, whatever they are.
  void set_bytes(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size(); begin += word_bytes) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + begin, std::min(text.size() - begin, word_bytes));
      words_[begin / word_bytes].set(word);
    }
    bytes_.set(text.size());
  }
  [[nodiscard]] std::string get() const {
    std::string text(std::min<std::uint64_t>(bytes_.get(), most), '\0');
    for (std::size_t begin = 0; begin < text.size(); begin += word_bytes) {
      const std::uint64_t word = words_[begin / word_bytes].get();
      std::memcpy(text.data() + begin, &word, std::min(text.size() - begin, word_bytes));
    }
    return text;
  }

private:
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  static_assert(most % word_bytes == 0);
  Cell<std::uint64_t> bytes_;
  std::array<Cell<std::uint64_t>, most / word_bytes> words_;
};

struct alignas(64) Slot {
  std::atomic<std::uint32_t> word{};      // a State
  std::atomic<std::uint32_t> sleeping{};  // the client waits for the word in the kernel

  // The client's: a launch (service.proto, LaunchRequest).
  Cell<std::uint64_t> graph;
  Cell<std::int64_t> count;
  Cell<std::uint64_t> launch_id;
  Cell<std::int64_t> timeout_ns;  // from when the worker sees it; 0: none
  Cell<std::uint64_t> kind;  // a Kind; of an update `text` holds the UpdateRequest, and nothing else counts
  Cell<std::uint32_t> processor;  // where the client is, by sched_getcpu, and 1; 0: it does not say

  // The worker's question, and the client's reply to it.
  alignas(64) Cell<std::uint64_t> sequence;
  Cell<std::uint64_t> call;
  Cell<std::uint64_t> replied_to;  // a sequence number
  Cell<std::uint64_t>
      call_failed;  // bit 0: it did, `reply` says how; bit 1: the caller wants the launch to end

  // The worker's: a LaunchReport, or how the launch failed, "REASON_NAME message" in `text`. Where the text
  // is too long for the slot, the client sends the launch again over gRPC, with its id, and hears the whole
  // of it there.
  alignas(64) Cell<std::uint64_t> failed;
  Cell<std::uint64_t> text_was_cut;
  Cell<std::int64_t> launches;
  Cell<std::int64_t> threads;
  Cell<double> wall_s;
  Cell<std::int64_t> clamped;
  Cell<std::int64_t> zero_divisions;
  Cell<std::int64_t> dropped;
  Cell<std::uint64_t> iteration_count;
  std::array<Cell<std::int64_t>, most_iterations> iterations;
  Text<text_bytes> text;
  Text<reply_bytes> reply;
};

struct alignas(64) Header {
  Cell<std::uint64_t> magic_number;
  // The worker may be in the kernel: ring after posting.
  alignas(64) std::atomic<std::uint32_t> asleep{};
  std::atomic<std::uint32_t> closing{};  // the worker hands over
  // The worker leaves the client's processor, which takes it 30 to 200 us: who sleeps meanwhile is woken
  // where it went, and both are on one processor again. For clients that like to wait a little longer.
  Cell<std::uint32_t> moving;
  // The client's: it uses the first so many slots; 0: it does not say. Others are looked at now and then.
  Cell<std::uint32_t> slots;
};

struct Memory {
  Header header;
  std::array<Slot, slot_count> slots;
};

static_assert(sizeof(Slot) == 1024 && sizeof(Header) == 128, "the layout is part of the protocol");

}  // namespace eagle::ring
