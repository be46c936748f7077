#include "tools/bench/bench_serve.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "engine/base/status.h"
#include "hippodrome/v1/generation.grpc.pb.h"

namespace hippodrome {
namespace {

using Clock = std::chrono::steady_clock;

// When the tokens of one stream came.
struct Arrivals {
  std::vector<std::pair<Clock::time_point, int64_t>> tokens;
  grpc::Status status;
};

v1::GenerateRequest RequestFor(const ServeBenchmark& benchmark, int64_t stream) {
  v1::GenerateRequest request;
  request.set_model(benchmark.model);
  for (int64_t i = 0; i < benchmark.prompt; ++i) {
    request.mutable_token_ids()->add_ids(static_cast<int32_t>((i * 31 + stream * 17) % 1000));
  }
  request.set_max_tokens(benchmark.max_tokens);
  request.set_temperature(0);
  request.set_ignore_eos(true);
  return request;
}

void ReadStream(v1::Generation::Stub& stub, const v1::GenerateRequest& request,
                Arrivals& arrivals) {
  grpc::ClientContext context;
  const auto reader = stub.Generate(&context, request);
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    arrivals.tokens.emplace_back(Clock::now(), response.token_ids_size());
  }
  arrivals.status = reader->Finish();
}

absl::StatusOr<double> CommonRate(const std::vector<Arrivals>& streams) {
  Clock::time_point begin = Clock::time_point::min();
  Clock::time_point end = Clock::time_point::max();
  for (const Arrivals& stream : streams) {
    if (!stream.status.ok() || stream.tokens.empty()) {
      return Unavailable("a stream ended without its tokens: " + stream.status.error_message());
    }
    begin = std::max(begin, stream.tokens.front().first);
    end = std::min(end, stream.tokens.back().first);
  }
  if (begin >= end) {
    return FailedPrecondition("the streams never decoded all together; raise --tokens");
  }
  int64_t tokens = 0;
  for (const Arrivals& stream : streams) {
    for (const auto& [time, count] : stream.tokens) {
      if (time > begin && time <= end) tokens += count;
    }
  }
  return static_cast<double>(tokens) / std::chrono::duration<double>(end - begin).count();
}

}  // namespace

absl::StatusOr<BenchResult> BenchServe(const ServeBenchmark& benchmark) {
  const auto stub = v1::Generation::NewStub(
      grpc::CreateChannel(benchmark.address, grpc::InsecureChannelCredentials()));
  std::vector<Arrivals> streams(benchmark.streams);
  std::vector<std::thread> readers;
  for (int64_t i = 0; i < benchmark.streams; ++i) {
    readers.emplace_back([&, i] { ReadStream(*stub, RequestFor(benchmark, i), streams[i]); });
  }
  for (std::thread& reader : readers) reader.join();
  HIPPODROME_ASSIGN_OR_RETURN(const double rate, CommonRate(streams));
  return BenchResult{.name = "serve",
                     .length = benchmark.prompt,
                     .batch = benchmark.streams,
                     .value = rate,
                     .unit = "tokens/s"};
}

}  // namespace hippodrome
