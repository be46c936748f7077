#include "tools/commands/serve_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::serve_options_test {
namespace {

absl::StatusOr<ServeOptions> ParseServeOptions(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "serve");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const auto line = CommandLine::Parse(static_cast<int>(argv.size()), argv.data(), kServeSpec);
  if (!line.ok()) return line.status();
  const auto whole = line->WithConfigFile();
  if (!whole.ok()) return whole.status();
  return ReadServeOptions(*whole);
}

TEST(ServeOptionsTest, Defaults) {
  const auto options = ParseServeOptions({"--model", "/models/h3-demo/"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->server.models.size(), 1u);
  EXPECT_EQ(options->server.models[0].name, "h3-demo");
  EXPECT_EQ(options->server.models[0].directory, "/models/h3-demo/");
  EXPECT_EQ(options->server.http.address, "127.0.0.1:8080");
  EXPECT_EQ(options->server.grpc.address, "127.0.0.1:50051");
  EXPECT_EQ(options->server.grace, std::chrono::seconds(30));
  EXPECT_EQ(options->server.drain_delay, std::chrono::seconds(0));
  EXPECT_EQ(options->server.admin_address, "");
  EXPECT_EQ(options->server.batcher.max_stall, std::chrono::milliseconds(50));
  EXPECT_EQ(options->server.batcher.max_queue, 256);
  EXPECT_EQ(options->server.batcher.max_wait, std::chrono::milliseconds(0));
  EXPECT_EQ(options->server.batcher.max_client_share, 0.75);
  EXPECT_EQ(options->server.encoding.max_queue, 4096);
  EXPECT_EQ(options->server.encoding.max_batch_delay, std::chrono::microseconds(500));
  EXPECT_EQ(options->load.encoder.pad_to, std::nullopt);
  EXPECT_FALSE(options->load.pad_to_max);
}

TEST(ServeOptionsTest, EveryOption) {
  const auto options = ParseServeOptions({"--model=a=x",
                                          "--model",
                                          "b=y/z",
                                          "--http",
                                          "0.0.0.0:0",
                                          "--grpc=[::1]:1",
                                          "--device=cpu",
                                          "--weights",
                                          "bf16",
                                          "--threads=3",
                                          "--pin",
                                          "--numa-node=1000",
                                          "--max-sequences",
                                          "5",
                                          "--kv-bytes",
                                          "1000",
                                          "--attention-window=512",
                                          "--h3-state=bf16",
                                          "--speculate",
                                          "--max-queue",
                                          "7",
                                          "--max-wait=2.5",
                                          "--max-client-share=0.5",
                                          "--max-stall-ms",
                                          "9",
                                          "--cors-origin=https://a.example",
                                          "--cors-origin",
                                          "http://[::1]:8000",
                                          "--admin=127.0.0.1:9000",
                                          "--http-max-connections=100",
                                          "--http-max-connections-per-address=0",
                                          "--max-body-bytes-total=16777216",
                                          "--drain-delay=4",
                                          "--pad-to=128",
                                          "--max-batch-tokens",
                                          "512",
                                          "--max-batch-delay=0",
                                          "--grace-seconds",
                                          "0"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server.models[1].name, "b");
  EXPECT_EQ(options->server.models[1].directory, "y/z");
  EXPECT_EQ(options->load.weights, DType::kBF16);
  EXPECT_EQ(options->load.cpu.threads, 3);
  EXPECT_EQ(options->load.generator.max_sequences, 5);
  EXPECT_EQ(options->load.generator.key_value_bytes, 1000);
  EXPECT_EQ(options->load.generator.attention_window, 512);
  EXPECT_EQ(options->load.generator.h3_state, DType::kBF16);
  EXPECT_TRUE(options->load.generator.speculate);
  EXPECT_EQ(options->server.batcher.max_queue, 7);
  EXPECT_EQ(options->server.encoding.max_queue, 7);
  EXPECT_EQ(options->load.encoder.pad_to, 128);
  EXPECT_EQ(options->load.encoder.max_batch_tokens, 512);
  EXPECT_EQ(options->server.encoding.max_batch_delay, std::chrono::microseconds(0));
  EXPECT_EQ(options->server.batcher.max_stall, std::chrono::milliseconds(9));
  EXPECT_EQ(options->server.grace, std::chrono::seconds(0));
  EXPECT_EQ(options->server.drain_delay, std::chrono::seconds(4));
  EXPECT_EQ(options->server.admin_address, "127.0.0.1:9000");
  EXPECT_EQ(options->server.http.max_connections, 100);
  EXPECT_EQ(options->server.http.max_connections_per_address, 0);
  EXPECT_EQ(options->server.http.max_body_bytes_total, 16777216);
}

TEST(ServeOptionsTest, Batches) {
  EXPECT_EQ(ParseServeOptions({"--model", "x"})->server.batches.directory, "");
  const auto options = ParseServeOptions(
      {"--model", "x", "--batch-dir=d", "--batch-file-bytes=10", "--batch-dir-bytes=20"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server.batches.directory, "d");
  EXPECT_EQ(options->server.batches.file_bytes, 10);
  EXPECT_EQ(options->server.batches.directory_bytes, 20);
}

TEST(ServeOptionsTest, MistakesAreNamed) {
  const std::vector<std::vector<std::string>> rows = {
      {},
      {"--model"},
      {"--model", ""},
      {"--model", "/"},
      {"--model", "=x"},
      {"--model", "x="},
      {"--model", "x", "--model", "y/x"},
      {"--model", "x", "--http", "8080"},
      {"--model", "x", "--admin", "8080"},
      {"--model", "x", "--http-max-connections", "0"},
      {"--model", "x", "--max-body-bytes-total", "1000"},
      {"--model", "x", "--device", "gpu"},
      {"--model", "x", "--weights", "int2"},
      {"--model", "x", "--threads", "-1"},
      {"--model", "x", "--threads", "2x"},
      {"--model", "x", "--numa-node", "-1"},
      {"--model", "x", "--numa-node", "1024"},
      {"--model", "x", "--pin=1"},
      {"--model", "x", "--max-sequences", "0"},
      {"--model", "x", "--kv-bytes", "9999999999999999999"},
      {"--model", "x", "--attention-window", "63"},
      {"--model", "x", "--h3-state", "int8"},
      {"--model", "x", "--speculate", "--draft", "y"},
      {"--model", "x", "--attention-window", "-64"},
      {"--model", "x", "--max-stall-ms", "0"},
      {"--model", "x", "--batch-dir", ""},
      {"--model", "x", "--batch-file-bytes", "0"},
      {"--model", "x", "--batch-dir-bytes", "-1"},
      {"--model", "x", "--pad-to", "0"},
      {"--model", "x", "--pad-to", "all"},
      {"--model", "x", "--max-batch-tokens", "0"},
      {"--model", "x", "--max-batch-delay", "-1"},
      {"--model", "x", "--grpc-max-connections", "0"},
      {"--model", "x", "--grpc-max-streams", "0"},
      {"--model", "x", "--grpc-memory-bytes", "1000"},
      {"--model", "x", "--tls-cert", "a.pem"},
      {"--model", "x", "--tls-key", "b.pem"},
      {"--model", "x", "--tls-client-ca", "c.pem"},
      {"--model", "x", "--nothing", "1"},
      {"--model", "x", "y"},
  };
  for (const auto& arguments : rows) {
    const auto options = ParseServeOptions(arguments);
    EXPECT_TRUE(IsUsage(options.status())) << testing::PrintToString(arguments);
    if (arguments.size() < 4) continue;
    EXPECT_NE(Message(options.status()).find(arguments[2]), std::string::npos) << options.status();
  }
}

TEST(ServeOptionsTest, LimitsOfGrpc) {
  const auto options = ParseServeOptions({"--model=x", "--grpc-max-connections=9",
                                          "--grpc-max-connections-per-address=8",
                                          "--grpc-max-streams=7", "--grpc-memory-bytes=20000000",
                                          "--grpc-connection-age=6", "--grpc-connection-grace=5"});
  ASSERT_TRUE(options.ok()) << options.status();
  const GrpcOptions& grpc = options->server.grpc;
  EXPECT_EQ(grpc.max_connections, 9);
  EXPECT_EQ(grpc.max_connections_per_address, 8);
  EXPECT_EQ(grpc.max_streams, 7);
  EXPECT_EQ(grpc.memory_bytes, 20000000);
  EXPECT_EQ(grpc.connection_age, std::chrono::seconds(6));
  EXPECT_EQ(grpc.connection_grace, std::chrono::seconds(5));
}

TEST(ServeOptionsTest, Tls) {
  EXPECT_FALSE(ParseServeOptions({"--model=x"})->server.tls.on());
  const auto options = ParseServeOptions(
      {"--model=x", "--tls-cert=a.pem", "--tls-key=b.pem", "--tls-client-ca=c.pem"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->server.tls.on());
  EXPECT_EQ(options->server.tls.certificate, "a.pem");
  EXPECT_EQ(options->server.tls.key, "b.pem");
  EXPECT_EQ(options->server.tls.client_ca, "c.pem");
}

TEST(ServeOptionsTest, PaddingOfEncoders) {
  const auto most = ParseServeOptions({"--model", "x", "--pad-to", "max"});
  EXPECT_TRUE(most->load.pad_to_max);
  const auto none = ParseServeOptions({"--model", "x", "--pad-to", "none"});
  EXPECT_FALSE(none->load.pad_to_max);
  EXPECT_EQ(none->load.encoder.pad_to, 0);
}

TEST(ServeOptionsTest, TheDeviceIsChosen) {
  EXPECT_EQ(ParseServeOptions({"--model", "x"})->load.device, DeviceChoice::kAuto);
  EXPECT_EQ(ParseServeOptions({"--model", "x", "--device", "cpu"})->load.device,
            DeviceChoice::kCpu);
  EXPECT_EQ(ParseServeOptions({"--model", "x", "--device", "cuda"})->load.device,
            DeviceChoice::kCuda);
}

TEST(ServeOptionsTest, TheServicesFileIsRead) {
  const auto options = ParseServeOptions({"--config", "deploy/systemd/config.json"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->server.models.empty());
  EXPECT_FALSE(options->server.admin_address.empty());
}

TEST(ServeOptionsTest, Logs) {
  const auto options = ParseServeOptions(
      {"--model", "m", "--log-level", "warning", "--access-log", "/var/log/access"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server.log.level, LogLevel::kWarning);
  EXPECT_EQ(options->server.log.access_log, "/var/log/access");
  EXPECT_TRUE(IsUsage(ParseServeOptions({"--model", "m", "--log-level", "loud"}).status()));
}

TEST(ServeOptionsTest, LatencyBuckets) {
  const auto options = ParseServeOptions({"--model", "m", "--latency-buckets", "0.001,0.5,2"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server.latency_buckets, (std::vector<double>{0.001, 0.5, 2}));
  std::string many = "1";
  for (int i = 2; i <= 65; ++i) many += "," + std::to_string(i);
  for (const std::string& bad :
       {std::string(), std::string("1,"), std::string("2,1"), std::string("1,1"), std::string("0"),
        std::string("-1"), std::string("1,nan"), std::string("1,inf"), std::string("a"), many}) {
    const auto refused = ParseServeOptions({"--model", "m", "--latency-buckets=" + bad});
    EXPECT_TRUE(IsUsage(refused.status())) << bad;
  }
}

}  // namespace
}  // namespace hippodrome::serve_options_test
