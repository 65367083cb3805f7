#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

namespace wire = grpc::reflection::v1alpha;
namespace protobuf = google::protobuf;

// Nobody has said who they are: streams are few, and short.
constexpr int most_streams = 64;
constexpr std::chrono::seconds longest_stream{60};

// The file and what it imports, each before those that import it.
void add_file(const protobuf::FileDescriptor& file, std::set<std::string>& added,
              wire::FileDescriptorResponse& response) {
  if (!added.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) add_file(*file.dependency(i), added, response);
  protobuf::FileDescriptorProto described;
  file.CopyTo(&described);
  *response.add_file_descriptor_proto() = described.SerializeAsString();
}

void answer_file(const protobuf::FileDescriptor* file, wire::ServerReflectionResponse& response) {
  if (file == nullptr) {
    response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
    response.mutable_error_response()->set_error_message("eagled has no such file or symbol");
    return;
  }
  std::set<std::string> added;
  add_file(*file, added, *response.mutable_file_descriptor_response());
}

class ReflectionService;

// One stream: a request, its answer, and so on. Its own until OnDone.
class ReflectionStream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, wire::ServerReflectionResponse> {
public:
  static ReflectionStream* begin(const Arrival& arrival, ReflectionService& service, bool one_too_many) {
    std::shared_ptr<ReflectionStream> made(new ReflectionStream(arrival, service));
    made->self_ = made;
    if (one_too_many) {
      made->end({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many ask for descriptions; try again"});
      return made.get();
    }
    made->StartRead(&made->bytes_);
    made->time_.await(arrival.first_words, [made] {
      made->end({grpc::StatusCode::DEADLINE_EXCEEDED, "the stream is over; open another one"});
    });
    return made.get();
  }

private:
  ReflectionStream(const Arrival& arrival, ReflectionService& service)
      : daemon_(arrival.daemon), context_(arrival.context), method_(arrival.method), service_(service) {}
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!ok) return end_locked(grpc::Status::CANCELLED);
    StartRead(&bytes_);
  }
  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override;
  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!ended_) end_locked(status);
  }
  void end_locked(const grpc::Status& status) {
    ended_ = true;
    Finish(status);
  }

  Daemon& daemon_;
  grpc::CallbackServerContext& context_;
  const Method& method_;
  ReflectionService& service_;
  std::shared_ptr<ReflectionStream> self_;
  FirstWord time_;  // that the stream may take in all
  grpc::ByteBuffer bytes_;
  wire::ServerReflectionRequest request_;
  wire::ServerReflectionResponse response_;
  std::mutex mutex_;
  bool ended_ = false;
};

class ReflectionService final : public Service {
public:
  ReflectionService(Daemon& daemon, std::vector<std::string> names)
      : Service(daemon, wire::ServerReflection::service_full_name(), longest_stream),
        names_(std::move(names)) {
    names_.emplace_back(wire::ServerReflection::service_full_name());
    stream<wire::ServerReflectionResponse>("ServerReflectionInfo", [this](const Arrival& arrival) {
      return ReflectionStream::begin(arrival, *this, ++streams_ > most_streams);
    });
  }
  void left() { --streams_; }

  void answer(const wire::ServerReflectionRequest& request, wire::ServerReflectionResponse& response) const {
    using Kind = wire::ServerReflectionRequest::MessageRequestCase;
    response.Clear();
    *response.mutable_original_request() = request;
    response.set_valid_host(request.host());
    const protobuf::DescriptorPool& pool = *protobuf::DescriptorPool::generated_pool();
    switch (request.message_request_case()) {
      case Kind::kListServices:
        for (const std::string& name : names_)
          response.mutable_list_services_response()->add_service()->set_name(name);
        return;
      case Kind::kFileByFilename:
        return answer_file(pool.FindFileByName(request.file_by_filename()), response);
      case Kind::kFileContainingSymbol:
        return answer_file(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      default:
        response.mutable_error_response()->set_error_code(grpc::StatusCode::UNIMPLEMENTED);
        response.mutable_error_response()->set_error_message(
            "eagled lists services and tells files; its messages have no extensions");
    }
  }

private:
  std::vector<std::string> names_;
  std::atomic<int> streams_ = 0;
};

void ReflectionStream::OnReadDone(bool ok) {
  Status status;
  if (ok) {
    HeldBytes none;  // it is small
    status = read(daemon_, nullptr, method_, bytes_, request_, none);
    if (status.ok()) service_.answer(request_, response_);
  }
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (!ok || !status.ok()) return end_locked(rpc::to_grpc(daemon_, status, context_));
  StartWrite(&response_);
}

void ReflectionStream::OnDone() {
  static_cast<void>(time_.came());
  service_.left();
  const auto last = std::move(self_);
}

}  // namespace

std::unique_ptr<grpc::Service> make_reflection_service(Daemon& daemon, std::vector<std::string> names) {
  return std::make_unique<ReflectionService>(daemon, std::move(names));
}

}  // namespace eagle::server
