// A host for unit tests: a name and memory of its own, and nothing that computes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/host.h"
#include "client/plane_registry.h"

namespace eagle::testing {

class FakeHost final : public Host {
public:
  explicit FakeHost(std::string name) : name_(std::make_shared<const std::string>(std::move(name))) {}

  [[nodiscard]] const std::string& name() const override { return *name_; }
  [[nodiscard]] bool remote() const override { return false; }
  [[nodiscard]] bool closed() const override { return false; }
  Status close() override { return {}; }
  StatusOr<SessionInfo> info() override { return SessionInfo(); }
  StatusOr<std::vector<GraphInfo>> graphs(GraphScope) override { return std::vector<GraphInfo>(); }
  StatusOr<std::string> picture(const GraphInfo&, PictureFormat) override {
    return Status(Reason::internal, "this host builds nothing");
  }

  // Every array is a plane of its own, numbered from 1.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label, Contents) override {
    const auto buffer = std::make_shared<HeapBuffer>(bytes);
    PlaneRegistry::of_process().add(*buffer,
                                    {name_, {++planes_, generation_}, bytes, 0, std::string(label), buffer});
    return std::shared_ptr<Buffer>(buffer);
  }
  // As if the last plane had been released: the next one has its id, and the generation after its.
  void use_id_again() {
    --planes_;
    ++generation_;
  }
  [[nodiscard]] std::optional<PlaneAddress> find(const void* address, std::uint64_t bytes) const override {
    return PlaneRegistry::of_process().find(*name_, address, bytes);
  }
  StatusOr<std::unique_ptr<HostGraph>> build(const v1::GraphDescription&,
                                             std::span<const run::PlaneMemory>) override {
    return Status(Reason::internal, "this host builds nothing");
  }
  StatusOr<RunResult> simulate(const v1::RunDescription&, std::span<const run::PlaneMemory>,
                               const SimulateOptions&, const HostCall&) override {
    return Status(Reason::internal, "this host runs nothing");
  }

private:
  class HeapBuffer final : public Buffer {
  public:
    explicit HeapBuffer(std::uint64_t bytes) : HeapBuffer(std::vector<std::byte>(bytes)) {}
    ~HeapBuffer() override { PlaneRegistry::of_process().remove(*this); }

  private:
    explicit HeapBuffer(std::vector<std::byte> memory)
        : Buffer(memory.data(), memory.size()), memory_(std::move(memory)) {}
    std::vector<std::byte> memory_;
  };
  std::shared_ptr<const std::string> name_;
  std::uint64_t planes_ = 0;
  std::uint64_t generation_ = 1;
};

}  // namespace eagle::testing
