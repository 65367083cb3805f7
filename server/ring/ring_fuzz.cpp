// A ring that its client scribbles on while its launches run: whatever stands there, the worker goes on, a
// launch of another session comes out right, and every launch that began ends.
#include <fcntl.h>
#include <sys/eventfd.h>

#include <atomic>
#include <thread>

#include "server/ring/ring.h"
#include "server/ring/rings.h"
#include "server/testing.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using server::testing::GraphScene;

// A session whose graph increments a plane of four numbers and, where asked, calls the client.
struct Tenant {
  Tenant(server::Daemon& daemon, bool calls) : session(server::testing::open_session(daemon)) {
    GraphScene scene(*session);
    x = scene.plane<double>(4, 0.0);
    server::testing::add_increment(scene, x);
    if (calls) server::testing::add_host_node(scene, 7, x);
    graph = server::testing::build(daemon, *session, scene);
    auto opened = daemon.open_ring(session);
    if (!opened.ok()) broken(opened.status().to_string());
    memory = *plane::Memory::map(UniqueFd(::fcntl((*opened)->memory_fd(), F_DUPFD_CLOEXEC, 0)),
                                 sizeof(ring::Memory));
    ring = *opened;
  }
  [[nodiscard]] ring::Memory& shared() const { return *reinterpret_cast<ring::Memory*>(memory.data()); }
  [[nodiscard]] std::atomic<std::uint32_t>& word(std::size_t slot) const { return shared().slots[slot].word; }
  void ring_the_bell() const { ::eventfd_write(ring->doorbell(), 1); }

  std::shared_ptr<server::Session> session;
  server::testing::PlaneArray<double> x;
  std::uint64_t graph = 0;
  std::shared_ptr<server::Ring> ring;
  plane::Memory memory;
};

struct World {
  std::unique_ptr<server::Daemon> daemon = server::testing::make_daemon();
  Tenant hostile{*daemon, true};
  Tenant neighbour{*daemon, false};
  std::uint64_t id = 0;
};

void post(Tenant& tenant, std::size_t slot, std::uint64_t graph, std::int64_t count, std::uint64_t id) {
  ring::Slot& shared = tenant.shared().slots[slot];
  shared.graph.set(graph);
  shared.count.set(count);
  shared.launch_id.set(id);
  shared.timeout_ns.set(0);
  shared.word.store(static_cast<std::uint32_t>(ring::State::posted));
  tenant.ring_the_bell();
}

// Reads one act of the client from the input and does it.
void act(World& world, Bytes& bytes) {
  Tenant& tenant = world.hostile;
  const std::size_t slot = bytes.byte() % ring::slot_count;
  ring::Slot& shared = tenant.shared().slots[slot];
  switch (bytes.byte() % 6) {
    case 0:
      post(tenant, slot, tenant.graph, bytes.byte() % 4, ++world.id);
      break;
    case 1:
      post(tenant, slot, static_cast<std::uint64_t>(bytes.number()), bytes.number(),
           static_cast<std::uint64_t>(bytes.number()));
      break;
    case 2:  // a reply, mostly to what was asked
      shared.replied_to.set(bytes.byte() % 4 == 0 ? static_cast<std::uint64_t>(bytes.number())
                                                  : shared.sequence.get());
      shared.call_failed.set(bytes.byte() % 4 == 0 ? 1 : 0);
      shared.word.store(static_cast<std::uint32_t>(ring::State::replied));
      tenant.ring_the_bell();
      break;
    case 3:  // any state
      shared.word.store(bytes.byte() % 8);
      tenant.ring_the_bell();
      break;
    case 4: {  // anything anywhere
      const auto at =
          static_cast<std::uint64_t>(bytes.number()) % (sizeof(ring::Memory) - 8) & ~std::uint64_t{7};
      const auto value = static_cast<std::uint64_t>(bytes.number());
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(tenant.memory.data() + at)).store(value);
      break;
    }
    default:
      std::this_thread::yield();
  }
}

// A launch of the neighbour's, from beginning to end.
void neighbour_launches(World& world) {
  Tenant& tenant = world.neighbour;
  const double before = tenant.x.values[0];
  post(tenant, 0, tenant.graph, 3, ++world.id);
  // libFuzzer and ctest end what does not end.
  while (tenant.word(0).load() != static_cast<std::uint32_t>(ring::State::done)) std::this_thread::yield();
  if (tenant.shared().slots[0].failed.get() != 0)
    broken("a neighbour's launch: " + tenant.shared().slots[0].text.get());
  if (tenant.x.values[0] != before + 3) broken("a neighbour's plane");
  tenant.word(0).store(static_cast<std::uint32_t>(ring::State::free));
}

// Fails what is open, so that the next input begins with launches that have ended, however often they were to
// run.
void settle(World& world) {
  while (world.daemon->executor().admitted() != 0) {
    for (std::size_t slot = 0; slot < ring::slot_count; ++slot) {
      ring::Slot& shared = world.hostile.shared().slots[slot];
      shared.replied_to.set(shared.sequence.get());
      shared.call_failed.set(1);
      shared.word.store(static_cast<std::uint32_t>(ring::State::replied));
    }
    world.hostile.ring_the_bell();
    std::this_thread::yield();
  }
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  eagle::testing::MessageMutator random(1);
  for (int i = 0; i < 12; ++i) {
    std::string acts;
    for (std::uint64_t k = 0; k < 40 + random.below(80); ++k) {
      acts += static_cast<char>(random.below(i < 6 ? 3 : 256));  // a few slots, or all of them
      acts += static_cast<char>(random.below(i % 2 == 0 ? 3 : 6));
    }
    all.push_back(acts);
  }
  return all;
}

}  // namespace eagle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  static fuzz::World& world = *new fuzz::World;  // ends with the process
  fuzz::Bytes bytes(data, size);
  while (!bytes.empty()) fuzz::act(world, bytes);
  fuzz::neighbour_launches(world);
  fuzz::settle(world);
  return 0;
}
