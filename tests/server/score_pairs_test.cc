// The demo model behind both transports: likelihoods of continuations are those of evaluation, bit
// for bit. tests/clients/score_pairs.py is the long form.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/model_directory.h"
#include "engine/passes/forward.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "kernels/make_backend.h"
#include "server/load_model.h"
#include "server/server.h"
#include "tests/testing/http_client.h"

namespace hippodrome::score_pairs_test {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "deploy/models/h3-demo";

struct Pair {
  Ids context;
  Ids continuation;
};

struct Likelihood {
  double log_probability = 0;
  bool greedy = true;
};

Ids Joined(const Pair& pair) {
  Ids ids = pair.context;
  ids.insert(ids.end(), pair.continuation.begin(), pair.continuation.end());
  return ids;
}

// Any tokens, among them ones whose bytes are not UTF-8, and the end of a text in its middle.
std::vector<Pair> RandomPairs(size_t count, const H3Config& config) {
  std::mt19937 random(14);
  const auto below = [&](int64_t end) { return static_cast<int32_t>(random() % end); };
  const auto tokens = [&](int32_t length) {
    Ids ids(length);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(below(16) == 0  ? config.eos_token_id
                                : below(4) == 0 ? below(256)
                                                : below(config.vocab_size));
    }
    return ids;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < count; ++i) {
    pairs.push_back({tokens(i % 20 == 19 ? 300 : 1 + below(60)), tokens(1 + below(12))});
  }
  return pairs;
}

class ScorePairsTest : public testing::Test {
 protected:
  ScorePairsTest() {
    LoadOptions load;
    load.generator.max_sequences = 12;  // so that some wait
    load.generator.key_value_bytes = 64 << 20;
    std::vector<ModelParts> models;
    models.push_back(LoadModel("demo", kModel, load).value());
    ServerOptions options;
    options.http.address = "127.0.0.1:0";
    options.grpc.address = "127.0.0.1:0";
    server_ = Server::Start(options, std::move(models)).value();
    stub_ = v1::Generation::NewStub(
        grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
    backend_ = MakeCpuBackend({.threads = 1});
    loaded_ = LoadDecoderDirectory(*backend_, kModel).value();
  }

  HttpAnswer Post(const json& request) {
    return HttpClient(server_->http_address()).Post("/v1/completions", request.dump());
  }

  // The request and the reading of lm-evaluation-harness.
  std::vector<Likelihood> OverHttp(std::span<const Pair> pairs) {
    json request = {{"temperature", 0}, {"max_tokens", 1}, {"logprobs", 1},
                    {"seed", 1234},     {"echo", true},    {"prompt", json::array()}};
    for (const Pair& pair : pairs) request["prompt"].push_back(Joined(pair));
    const HttpAnswer answer = Post(request);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json choices = json::parse(answer.body)["choices"];
    EXPECT_EQ(choices.size(), pairs.size());
    std::vector<Likelihood> likelihoods;
    for (size_t i = 0; i < std::min(choices.size(), pairs.size()); ++i) {
      EXPECT_EQ(choices[i]["index"], i);
      likelihoods.push_back(Read(choices[i]["logprobs"], pairs[i]));
    }
    return likelihoods;
  }

  static Likelihood Read(const json& scores, const Pair& pair) {
    const size_t tokens = Joined(pair).size();
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      EXPECT_EQ(scores[list].size(), tokens + 1);
    }
    EXPECT_TRUE(scores["token_logprobs"][0].is_null());
    EXPECT_TRUE(scores["top_logprobs"][0].is_null());
    Likelihood sum;
    for (size_t t = pair.context.size(); t < tokens; ++t) {
      const double token = scores["token_logprobs"][t];
      double best = token - 1;
      for (const auto& [name, value] : scores["top_logprobs"][t].items()) {
        best = std::max(best, value.get<double>());
      }
      sum.log_probability += token;
      sum.greedy &= token == best;
    }
    return sum;
  }

  std::vector<Likelihood> OverGrpc(std::span<const Pair> pairs) {
    std::vector<Likelihood> likelihoods;
    for (const Pair& pair : pairs) {
      v1::ScoreRequest request;
      request.mutable_token_ids()->mutable_ids()->Add(pair.context.begin(), pair.context.end());
      request.add_continuations()->mutable_token_ids()->mutable_ids()->Add(
          pair.continuation.begin(), pair.continuation.end());
      grpc::ClientContext context;
      v1::ScoreResponse response;
      const grpc::Status status = stub_->Score(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (response.scores_size() != 1) return likelihoods;
      likelihoods.push_back({response.scores(0).log_probability(), response.scores(0).greedy()});
    }
    return likelihoods;
  }

  // One sequence by itself.
  std::vector<Likelihood> InProcess(std::span<const Pair> pairs) {
    std::vector<Likelihood> likelihoods;
    for (const Pair& pair : pairs) {
      const auto scores = Scores(Joined(pair));
      Likelihood sum;
      for (const TokenScores& token : std::span(scores).subspan(pair.context.size())) {
        sum.log_probability += token.log_probability;
        sum.greedy &= token.log_probability == token.likeliest[0].log_probability;
      }
      likelihoods.push_back(sum);
    }
    return likelihoods;
  }
  const H3Config& config() const { return loaded_.model->config(); }
  std::vector<TokenScores> Scores(const Ids& ids) {
    return ForwardScores(*backend_, *loaded_.model, ids, 1).value();
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Generation::Stub> stub_;
  std::unique_ptr<Backend> backend_;
  LoadedDecoder loaded_;
};

void ExpectSame(const std::vector<Likelihood>& found, const std::vector<Likelihood>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(found[i].log_probability),
              std::bit_cast<uint64_t>(expected[i].log_probability))
        << "pair " << i;
    EXPECT_EQ(found[i].greedy, expected[i].greedy) << "pair " << i;
  }
}

TEST_F(ScorePairsTest, SumsAreThoseOfEvaluationInAnyBatch) {
  std::vector<Pair> pairs = RandomPairs(58, config());
  // Two that are the likeliest.
  for (int i = 0; i < 2; ++i) {
    Pair pair{pairs[i].context, {}};
    for (int t = 0; t < 3; ++t) {
      Ids ids = Joined(pair);
      ids.push_back(0);
      pair.continuation.push_back(Scores(ids).back().likeliest[0].token);
    }
    pairs.push_back(pair);
  }
  const std::vector<Likelihood> expected = InProcess(pairs);
  EXPECT_TRUE(expected[59].greedy);
  EXPECT_FALSE(expected[0].greedy);
  std::vector<Likelihood> http;
  size_t first = 0;
  for (const size_t batch : {1, 2, 3, 5, 17, 32}) {
    const auto some = OverHttp(std::span(pairs).subspan(first, batch));
    http.insert(http.end(), some.begin(), some.end());
    first += batch;
  }
  ASSERT_EQ(first, pairs.size());
  ExpectSame(http, expected);
  ExpectSame(OverGrpc(pairs), expected);
}

TEST_F(ScorePairsTest, AnEndOfTextThatIsMadeHasAnEntry) {
  const auto end_of_text = static_cast<int32_t>(config().eos_token_id);
  const json request = {
      {"prompt", {5, 6, 7}}, {"max_tokens", 1},
      {"temperature", 0},    {"logprobs", 1},
      {"echo", true},        {"logit_bias", {{std::to_string(end_of_text), 100}}}};
  const HttpAnswer answer = Post(request);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json choice = json::parse(answer.body)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["text"], loaded_.tokenizer->Decode(Ids{5, 6, 7}));
  const json& scores = choice["logprobs"];
  ASSERT_EQ(scores["tokens"].size(), 4);
  EXPECT_EQ(scores["tokens"][3], "<|endoftext|>");
  // The bias moves the choice, and no likelihood.
  EXPECT_EQ(scores["token_logprobs"][3].get<double>(),
            Scores({5, 6, 7, end_of_text})[3].log_probability);
  EXPECT_EQ(scores["top_logprobs"][3].size(), 2);
}

// Names that collided would hide each other: entries would be missing.
TEST_F(ScorePairsTest, EachAlternativeHasANameOfItsOwn) {
  json request = {{"max_tokens", 0}, {"logprobs", 20}, {"echo", true}, {"prompt", json::array()}};
  const std::vector<Pair> pairs = RandomPairs(12, config());
  for (const Pair& pair : pairs) request["prompt"].push_back(Joined(pair));
  const HttpAnswer answer = Post(request);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json choices = json::parse(answer.body)["choices"];
  for (size_t i = 0; i < pairs.size(); ++i) {
    const json& scores = choices[i]["logprobs"];
    const Ids ids = Joined(pairs[i]);
    ASSERT_EQ(scores["tokens"].size(), ids.size());
    for (size_t t = 1; t < ids.size(); ++t) {
      std::vector<double> values;
      for (const auto& entry : scores["top_logprobs"][t].items()) values.push_back(entry.value());
      const std::string name = scores["tokens"][t];
      EXPECT_EQ(scores["top_logprobs"][t][name], scores["token_logprobs"][t]);
      std::sort(values.rbegin(), values.rend());
      const bool among = scores["token_logprobs"][t].get<double>() >= values[19];
      EXPECT_EQ(values.size(), among ? 20 : 21);
    }
  }
}

TEST_F(ScorePairsTest, TwentyAlternativesAreTheMost) {
  json request = {{"prompt", "The king"}, {"max_tokens", 1}, {"logprobs", 20}};
  EXPECT_EQ(Post(request).status, 200);
  for (const int64_t count : {int64_t{21}, int64_t{-1}, int64_t{1} << 40}) {
    request["logprobs"] = count;
    const HttpAnswer answer = Post(request);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(json::parse(answer.body)["error"]["param"], "logprobs");
  }
}

}  // namespace
}  // namespace hippodrome::score_pairs_test
