#include "server/grpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "engine/base/status.h"
#include "server/grpc/grpc_services.h"
#include "server/guarded.h"

namespace hippodrome {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ExtensionNumberResponse;
using grpc::reflection::v1::FileDescriptorResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// That file has no messages, so nothing else would link its description.
[[gnu::used]] const auto* const kOlderName =
    &descriptor_table_grpc_2freflection_2fv1alpha_2freflection_2eproto;

absl::Status NoSuch(const char* what, const std::string& name) {
  return NotFound(std::string("no ") + what + " '" + name + "'");
}

// The file, and what it imports.
FileDescriptorResponse Serialized(const FileDescriptor* file) {
  FileDescriptorResponse response;
  std::vector<const FileDescriptor*> files = {file};
  std::set<const FileDescriptor*> seen(files.begin(), files.end());
  for (size_t i = 0; i < files.size(); ++i) {
    google::protobuf::FileDescriptorProto proto;
    files[i]->CopyTo(&proto);
    response.add_file_descriptor_proto(proto.SerializeAsString());
    for (int j = 0; j < files[i]->dependency_count(); ++j) {
      const FileDescriptor* import = files[i]->dependency(j);
      if (seen.insert(import).second) files.push_back(import);
    }
  }
  return response;
}

// The file that a request asks for.
absl::StatusOr<const FileDescriptor*> FindFile(const ServerReflectionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  if (request.has_file_by_filename()) {
    const FileDescriptor* file = pool.FindFileByName(request.file_by_filename());
    if (file == nullptr) return NoSuch("file", request.file_by_filename());
    return file;
  }
  if (request.has_file_containing_symbol()) {
    const FileDescriptor* file = pool.FindFileContainingSymbol(request.file_containing_symbol());
    if (file == nullptr) return NoSuch("symbol", request.file_containing_symbol());
    return file;
  }
  const auto& wanted = request.file_containing_extension();
  const auto* type = pool.FindMessageTypeByName(wanted.containing_type());
  if (type == nullptr) return NoSuch("message", wanted.containing_type());
  const FieldDescriptor* field = pool.FindExtensionByNumber(type, wanted.extension_number());
  if (field == nullptr) return NoSuch("extension", std::to_string(wanted.extension_number()));
  return field->file();
}

absl::StatusOr<ExtensionNumberResponse> ExtensionsOf(const std::string& name) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const auto* type = pool.FindMessageTypeByName(name);
  if (type == nullptr) return NoSuch("message", name);
  std::vector<const FieldDescriptor*> fields;
  pool.FindAllExtensions(type, &fields);
  ExtensionNumberResponse response;
  response.set_base_type_name(name);
  for (const FieldDescriptor* field : fields) response.add_extension_number(field->number());
  return response;
}

absl::Status Fill(const ServerReflectionRequest& request, const std::vector<std::string>& services,
                  ServerReflectionResponse& response) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
    case ServerReflectionRequest::kFileContainingSymbol:
    case ServerReflectionRequest::kFileContainingExtension: {
      HIPPODROME_ASSIGN_OR_RETURN(const FileDescriptor* file, FindFile(request));
      *response.mutable_file_descriptor_response() = Serialized(file);
      return absl::OkStatus();
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType: {
      HIPPODROME_ASSIGN_OR_RETURN(*response.mutable_all_extension_numbers_response(),
                                  ExtensionsOf(request.all_extension_numbers_of_type()));
      return absl::OkStatus();
    }
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return absl::OkStatus();
    default:
      return InvalidArgument("the request asks for nothing that this version knows");
  }
}

}  // namespace

// One call. Answers a request before it reads the next. Lives until gRPC is done with it.
class ReflectionStream : public Reflection::Reactor {
 public:
  ReflectionStream(const std::vector<std::string>& services, std::unique_ptr<CallRecord> call)
      : services_(services), call_(std::move(call)) {}

  // Ends at once where it is not `admitted`.
  void Start(const std::shared_ptr<ReflectionStream>& self, const grpc::Status& admitted) {
    self_ = self;
    if (!admitted.ok()) return End(admitted);
    StartRead(&request_);
  }

  void End(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = status;
    FinishIfIdle();
  }

  void OnReadDone(bool ok) override {
    std::lock_guard lock(mutex_);
    if (!ok && !outcome_) outcome_ = grpc::Status::OK;
    if (outcome_) return FinishIfIdle();
    const absl::Status status = Guarded([this] { return MakeResponse(); });
    if (!status.ok()) {
      outcome_ = grpc::Status(grpc::StatusCode::INTERNAL, Message(status));
      return FinishIfIdle();
    }
    writing_ = true;
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok && !outcome_) outcome_ = grpc::Status::CANCELLED;
    if (outcome_) return FinishIfIdle();
    StartRead(&request_);
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override { self_.reset(); }

 private:
  // An error in a request is part of its answer.
  absl::Status MakeResponse() {
    response_.Clear();
    response_.set_valid_host(request_.host());
    *response_.mutable_original_request() = request_;
    const absl::Status status = Fill(request_, services_, response_);
    if (!status.ok()) {
      response_.mutable_error_response()->set_error_code(static_cast<int>(status.code()));
      response_.mutable_error_response()->set_error_message(Message(status));
    }
    return absl::OkStatus();
  }

  // A read that is under way ends with the call. REQUIRES: mutex_ is held, outcome_ is known.
  void FinishIfIdle() {
    if (writing_ || finished_) return;
    finished_ = true;
    call_->Release();
    call_->Finish(absl::Status(static_cast<absl::StatusCode>(outcome_->error_code()), ""));
    Finish(*outcome_);
  }

  const std::vector<std::string>& services_;
  std::shared_ptr<ReflectionStream> self_;  // until OnDone()
  ServerReflectionRequest request_;         // that is being read

  std::mutex mutex_;  // guards all below
  const std::unique_ptr<CallRecord> call_;
  ServerReflectionResponse response_;  // that is being written
  bool writing_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> outcome_;  // how the call ends, once that is known
};

Reflection::Reflection(std::vector<std::string> services, Metrics& metrics,
                       const AccessControl& access)
    : services_(std::move(services)), metrics_(metrics), access_(access) {}

Reflection::~Reflection() = default;

void Reflection::Stop() {
  for (const auto& stream : streams_.Close()) {
    stream->End({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
  }
}

Reflection::Reactor* Reflection::Begin(grpc::CallbackServerContext& context) {
  auto call = BeginCall(context, metrics_, "ServerReflectionInfo");
  const auto admitted =
      Admitted(access_, context, *call, [](const Caller&) { return absl::StatusOr<bool>(true); });
  const auto stream = std::make_shared<ReflectionStream>(services_, std::move(call));
  const bool open = streams_.Add(stream);
  stream->Start(stream, ToGrpc(admitted.status(), context));
  if (!open) stream->End({grpc::StatusCode::UNAVAILABLE, "the server is stopping"});
  return stream.get();
}

}  // namespace hippodrome
