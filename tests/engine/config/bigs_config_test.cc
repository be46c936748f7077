#include "engine/config/bigs_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::bigs_config_test {
namespace {

using Activation = Epilogue::Activation;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As the published code writes such files.
constexpr char kClassifier[] = R"({
 "architectures": ["BiGSForSequenceClassification"], "classifier_dropout": null, "decode": false,
 "hidden_act": "gelu_new", "hidden_dropout_prob": 0.1, "hidden_size": 48,
 "id2label": {"1": "no", "0": "yes", "10": "k", "2": "c", "3": "d", "4": "e", "5": "f", "6": "g",
              "7": "h", "8": "i", "9": "j"},
 "label2id": {"yes": 0, "no": 1}, "intermediate_size": 144, "layer_norm_eps": 1e-6,
 "max_position_embeddings": 128, "model_type": "BiGS", "num_hidden_layers": 2, "num_ssm": 24,
 "pad_token_id": 5, "pooler_type": "mean", "position_embedding_type": "relative_key",
 "pre_norm": true, "type_vocab_size": 3, "vocab_size": 211, "num_ssm_heads": 4,
 "tie_word_embeddings": false, "layer_gelu": "tanh", "pad_to": 64})";

constexpr char kStack[] = R"({"model_type": "BiGS", "architectures": ["FlaxBiGSForMaskedLM"],
 "block": "stack", "routing": "attention", "num_attention_heads": 12, "pad_to": "none",
 "num_labels": 7, "id2label": {"0": "ignored"}})";

TEST(ParseBigsConfig, ReadsEveryField) {
  const auto config = ParseBigsConfig(kClassifier);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, EncoderHead::kSequenceClassification);
  EXPECT_EQ(config->vocab_size, 211);
  EXPECT_EQ(config->hidden_size, 48);
  EXPECT_EQ(config->num_hidden_layers, 2);
  EXPECT_EQ(config->intermediate_size, 144);
  EXPECT_EQ(config->num_ssm, 24);
  EXPECT_EQ(config->num_ssm_heads, 4);
  EXPECT_EQ(config->max_position_embeddings, 128);
  EXPECT_EQ(config->type_vocab_size, 3);
  EXPECT_EQ(config->pad_token_id, 5);
  EXPECT_EQ(config->layer_norm_eps, 1e-6);
  EXPECT_FALSE(config->position_table);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_TRUE(config->pool_padding);
  EXPECT_EQ(config->hidden_act, Activation::kGeluTanh);
  EXPECT_EQ(config->layer_gelu, Activation::kGeluTanh);
  EXPECT_EQ(config->pad_to, 64);
  EXPECT_THAT(config->labels,
              ElementsAre("yes", "no", "c", "d", "e", "f", "g", "h", "i", "j", "k"));
}

TEST(ParseBigsConfig, ReadsTheAblations) {
  const auto config = ParseBigsConfig(kStack);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, EncoderHead::kMaskedLm);
  EXPECT_EQ(config->block, EncoderBlock::kStack);
  EXPECT_EQ(config->routing, EncoderRouting::kAttention);
  EXPECT_EQ(config->num_attention_heads, 12);
  EXPECT_EQ(config->pad_to, 0);
  EXPECT_THAT(config->labels, IsEmpty());
}

TEST(ParseBigsConfig, FillsInWhatIsLeftOut) {
  const auto config = ParseBigsConfig("{}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, EncoderHead::kMaskedLm);
  EXPECT_EQ(config->vocab_size, 30522);
  EXPECT_EQ(config->hidden_size, 768);
  EXPECT_EQ(config->num_hidden_layers, 24);
  EXPECT_EQ(config->intermediate_size, 3072);
  EXPECT_EQ(config->num_ssm, 64);
  EXPECT_EQ(config->num_ssm_heads, 1);
  EXPECT_EQ(config->layer_norm_eps, 1e-12);
  EXPECT_TRUE(config->position_table);
  EXPECT_TRUE(config->tie_word_embeddings);
  EXPECT_FALSE(config->pool_padding);
  EXPECT_EQ(config->hidden_act, Activation::kGeluErf);
  EXPECT_EQ(config->layer_gelu, Activation::kGeluErf);
  EXPECT_EQ(config->pad_to, 512);
}

// {"KEY": VALUE} put over `base`.
std::string Changed(const char* base, const std::string& changes) {
  Json json = Json::parse(base);
  json.update(Json::parse(changes));
  return json.dump();
}

TEST(ParseBigsConfig, KnowsTheClassesOfBothLibraries) {
  const std::pair<const char*, EncoderHead> classes[] = {
      {"BiGSModel", EncoderHead::kNone},
      {"BiGSForMaskedLM", EncoderHead::kMaskedLm},
      {"BiGSForSequenceClassification", EncoderHead::kSequenceClassification},
      {"BiGSForMultipleChoice", EncoderHead::kMultipleChoice},
      {"BiGSForTokenClassification", EncoderHead::kTokenClassification},
      {"BiGSForQuestionAnswering", EncoderHead::kQuestionAnswering}};
  for (const auto& [name, head] : classes) {
    for (const std::string prefix : {"", "Flax"}) {
      const auto config = ParseBigsConfig(R"({"architectures": [")" + prefix + name + R"("]})");
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->head, head);
    }
    EXPECT_STREQ(Name(head), name);
  }
  for (const char* absent : {R"({"architectures": []})", R"({"architectures": null})"}) {
    EXPECT_EQ(ParseBigsConfig(absent)->head, EncoderHead::kMaskedLm);
  }
}

TEST(ParseBigsConfig, KnowsTheActivations) {
  const std::pair<const char*, Activation> activations[] = {
      {"gelu", Activation::kGeluErf},       {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
      {"swish", Activation::kSilu}};
  for (const auto& [name, activation] : activations) {
    const auto config =
        ParseBigsConfig(Changed("{}", R"({"hidden_act": ")" + std::string(name) + R"("})"));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->hidden_act, activation) << name;
  }
}

TEST(ParseBigsConfig, LabelsHaveNamesOrNumbers) {
  const char* classifier = R"({"architectures": ["BiGSForTokenClassification"]})";
  EXPECT_THAT(ParseBigsConfig(classifier)->labels, ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_THAT(ParseBigsConfig(Changed(classifier, R"({"num_labels": 1})"))->labels,
              ElementsAre("LABEL_0"));
  EXPECT_THAT(
      ParseBigsConfig(Changed(classifier, R"({"num_labels": 2, "id2label": {"0": "x"}})"))->labels,
      ElementsAre("x"));
}

TEST(ParseBigsConfig, ReadsItsOwnText) {
  for (const char* text : {kClassifier, kStack, "{}"}) {
    const auto config = ParseBigsConfig(text);
    ASSERT_TRUE(config.ok());
    const auto again = ParseBigsConfig(ToJson(*config));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToJson(*again), ToJson(*config));
    EXPECT_EQ(again->head, config->head);
    EXPECT_EQ(again->labels, config->labels);
    EXPECT_EQ(again->hidden_act, config->hidden_act);
    EXPECT_EQ(again->layer_gelu, config->layer_gelu);
    EXPECT_EQ(again->layer_norm_eps, config->layer_norm_eps);
    EXPECT_EQ(again->position_table, config->position_table);
    EXPECT_EQ(again->pool_padding, config->pool_padding);
    EXPECT_EQ(again->num_attention_heads, config->num_attention_heads);
    EXPECT_EQ(again->pad_to, config->pad_to);
    const auto family = ParseModelFamily(ToJson(*config));
    ASSERT_TRUE(family.ok());
    EXPECT_EQ(*family, ModelFamily::kBigs);
  }
}

struct BadConfig {
  const char* changes;
  const char* message;
};

TEST(ParseBigsConfig, NamesTheFieldAtFault) {
  const BadConfig bad[] = {
      {R"({"model_type": "bert"})", "model_type is \"bert\", expected \"BiGS\""},
      {R"({"architectures": ["BiGSForPreTraining"]})",
       "architectures is [\"BiGSForPreTraining\"], expected one of \"BiGSModel\", \"BiGSForMask"},
      {R"({"architectures": ["FlaxBiGSForNextSentencePrediction"]})", "architectures is [\"Flax"},
      {R"({"architectures": "BiGSModel"})", "architectures is \"BiGSModel\", expected one of"},
      {R"({"architectures": [3]})", "architectures is [3], expected one of"},
      {R"({"vocab_size": 0})", "vocab_size is 0, expected an integer in [1, 16777216]"},
      {R"({"hidden_size": "48"})", "hidden_size is \"48\", expected an integer in [1, 65536]"},
      {R"({"num_hidden_layers": 1025})", "num_hidden_layers is 1025, expected an integer in"},
      {R"({"intermediate_size": -1})", "intermediate_size is -1, expected an integer in"},
      {R"({"max_position_embeddings": 1e9})", "max_position_embeddings is 1000000000.0, expected"},
      {R"({"type_vocab_size": 0})", "type_vocab_size is 0, expected an integer in [1, 65536]"},
      {R"({"pad_token_id": 211})", "pad_token_id is 211, expected an integer in [0, 210]"},
      {R"({"layer_norm_eps": 0})", "layer_norm_eps is 0, expected a number in (0, 1]"},
      {R"({"num_ssm": 4097})", "num_ssm is 4097, expected an integer in [1, 4096]"},
      {R"({"num_ssm_heads": 49})", "num_ssm_heads is 49, expected an integer in [1, 48]"},
      {R"({"num_ssm_heads": 5})", "num_ssm_heads is 5, expected a divisor of hidden_size 48"},
      {R"({"routing": "attention"})", "num_attention_heads is missing, expected an integer in"},
      {R"({"routing": "attention", "num_attention_heads": 5})",
       "num_attention_heads is 5, expected a divisor of hidden_size 48"},
      {R"({"routing": "rnn"})", "routing is \"rnn\", expected \"ssm\" or \"attention\""},
      {R"({"block": 1})", "block is 1, expected \"gated\" or \"stack\""},
      {R"({"hidden_act": "mish"})", "hidden_act is \"mish\", expected \"gelu\", \"gelu_new\","},
      {R"({"layer_gelu": "new"})", "layer_gelu is \"new\", expected \"erf\" or \"tanh\""},
      {R"({"pooler_type": "cls"})",
       "pooler_type is \"cls\", expected \"non_padding_mean\" or \"mean\""},
      {R"({"position_embedding_type": 1})", "position_embedding_type is 1, expected a string"},
      {R"({"tie_word_embeddings": "yes"})", "tie_word_embeddings is \"yes\", expected true or"},
      {R"({"pad_to": 0})", "pad_to is 0, expected \"none\" or an integer in [1, 128]"},
      {R"({"pad_to": 129})", "pad_to is 129, expected \"none\" or an integer in [1, 128]"},
      {R"({"pad_to": "batch"})", "pad_to is \"batch\", expected \"none\" or an integer in"},
      {R"({"pad_to": 18446744073709551615})", "pad_to is 18446744073709551615, expected"},
      {R"({"id2label": ["a"]})", "id2label is [\"a\"], expected an object from \"0\", \"1\", .."},
      {R"({"id2label": {}})", "id2label is {}, expected an object"},
      {R"({"id2label": {"0": "a", "2": "b"}})", "id2label is {\"0\":\"a\",\"2\":\"b\"}, expected"},
      {R"({"id2label": {"0": 1}})", "id2label is {\"0\":1}, expected an object"},
      {R"({"id2label": null, "num_labels": 0})", "num_labels is 0, expected an integer in [1,"},
  };
  for (const BadConfig& config : bad) {
    const auto status = ParseBigsConfig(Changed(kClassifier, config.changes)).status();
    ASSERT_TRUE(absl::IsInvalidArgument(status)) << config.changes;
    EXPECT_THAT(Message(status), HasSubstr(std::string("config.json: ") + config.message));
  }
}

TEST(ParseBigsConfig, RefusesWhatIsNoJsonObject) {
  for (const char* text : {"", "[]", "{\"a\": 1e999}", "{\"\xff\": 1}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBigsConfig(text).status())) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(ParseModelFamily(text).status())) << text;
  }
}

TEST(ParseModelFamily, GoesByTheModelType) {
  EXPECT_EQ(*ParseModelFamily(R"({"model_type": "BiGS"})"), ModelFamily::kBigs);
  EXPECT_EQ(*ParseModelFamily(R"({"model_type": "bigs"})"), ModelFamily::kBigs);
  EXPECT_EQ(*ParseModelFamily(R"({"model_type": "h3"})"), ModelFamily::kH3);
  EXPECT_EQ(*ParseModelFamily("{}"), ModelFamily::kH3);
  EXPECT_THAT(Message(ParseModelFamily(R"({"model_type": "gpt2"})").status()),
              HasSubstr("model_type is \"gpt2\", expected \"h3\" or \"BiGS\""));
  EXPECT_THAT(Message(ParseModelFamily(R"({"model_type": 3})").status()),
              HasSubstr("model_type is 3, expected a string"));
}

TEST(ReadBigsConfig, NamesTheFile) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(absl::IsNotFound(ReadBigsConfig(directory.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadModelFamily(directory.path()).status()));
  directory.Write("config.json", R"({"num_ssm": 0})");
  EXPECT_THAT(Message(ReadBigsConfig(directory.path()).status()),
              HasSubstr(directory.File("config.json") + ": num_ssm is 0"));
  directory.Write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_THAT(Message(ReadModelFamily(directory.path()).status()),
              HasSubstr(directory.File("config.json") + ": model_type is"));
  directory.Write("config.json", kClassifier);
  EXPECT_TRUE(ReadBigsConfig(directory.path()).ok());
  EXPECT_EQ(*ReadModelFamily(directory.path()), ModelFamily::kBigs);
}

}  // namespace
}  // namespace hippodrome::bigs_config_test
