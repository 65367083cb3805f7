// LocalRuns: submitted runs of an in-process session, each in a thread of its own. They end with the session.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "client/host.h"
#include "client/local_device.h"
#include "engine/engine.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}
namespace eagle::v1 {
class PlaneDeclaration;
}

namespace eagle {

// Thread-safe. Runs whose lease is over are let go at the next call.
class LocalRuns final : public HostRuns {
public:
  struct Bound {
    std::vector<run::PlaneMemory> memory;
    std::vector<LocalPlane> planes;
    std::vector<std::shared_ptr<const void>> keep_alive;  // of private memory
  };
  using Bind =
      std::function<StatusOr<Bound>(const google::protobuf::RepeatedPtrField<v1::PlaneDeclaration>& planes,
                                    std::span<const run::PlaneMemory> private_planes)>;

  LocalRuns(Engine& engine, Bind bind) : engine_(engine), bind_(std::move(bind)) {}
  ~LocalRuns() override;

  StatusOr<std::uint64_t> submit(const v1::SubmitRequest& request,
                                 std::span<const run::PlaneMemory> private_planes,
                                 std::vector<std::shared_ptr<const void>> keep_alive) override;
  Status get(std::uint64_t run, v1::KeptRun& reply) override;
  Status list(v1::ListRunsReply& reply) override;
  Status fetch(const v1::FetchRunRequest& request, std::span<const run::PlaneMemory> private_planes) override;
  Status cancel(std::uint64_t run) override;
  // Cancels all and waits for their threads.
  void close();

private:
  struct Run;
  std::shared_ptr<Run> find(std::uint64_t id);
  static void describe(Run& run, v1::KeptRun& reply);

  Engine& engine_;
  const Bind bind_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Run>> runs_;
  std::uint64_t last_ = 0;
};

}  // namespace eagle
