// The words of an encoder's config.json and what they mean.
#ifndef HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_WORDS_H_
#define HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_WORDS_H_

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/config/bigs_config.h"

namespace hippodrome {

// A word of the file and what it means.
template <typename Value>
struct ConfigWord {
  const char* text;
  Value value;
};

inline constexpr ConfigWord<EncoderHead> kHeadWords[] = {
    {"BiGSModel", EncoderHead::kNone},
    {"BiGSForMaskedLM", EncoderHead::kMaskedLm},
    {"BiGSForSequenceClassification", EncoderHead::kSequenceClassification},
    {"BiGSForMultipleChoice", EncoderHead::kMultipleChoice},
    {"BiGSForTokenClassification", EncoderHead::kTokenClassification},
    {"BiGSForQuestionAnswering", EncoderHead::kQuestionAnswering},
};

// The first name of an activation is the one that is written.
inline constexpr ConfigWord<Epilogue::Activation> kHiddenActWords[] = {
    {"gelu", Epilogue::Activation::kGeluErf},
    {"gelu_new", Epilogue::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Epilogue::Activation::kGeluTanh},
    {"gelu_fast", Epilogue::Activation::kGeluTanh},
    {"relu", Epilogue::Activation::kRelu},
    {"silu", Epilogue::Activation::kSilu},
    {"swish", Epilogue::Activation::kSilu},
};
inline constexpr ConfigWord<Epilogue::Activation> kLayerGeluWords[] = {
    {"erf", Epilogue::Activation::kGeluErf}, {"tanh", Epilogue::Activation::kGeluTanh}};
inline constexpr ConfigWord<bool> kPoolerWords[] = {{"non_padding_mean", false}, {"mean", true}};
inline constexpr ConfigWord<EncoderBlock> kBlockWords[] = {{"gated", EncoderBlock::kGated},
                                                           {"stack", EncoderBlock::kStack}};
inline constexpr ConfigWord<EncoderRouting> kRoutingWords[] = {
    {"ssm", EncoderRouting::kSsm}, {"attention", EncoderRouting::kAttention}};

template <typename Value, size_t n>
const ConfigWord<Value>* FindWord(const ConfigWord<Value> (&words)[n], std::string_view text) {
  for (const ConfigWord<Value>& word : words) {
    if (text == word.text) return &word;
  }
  return nullptr;
}

template <typename Value, size_t n>
const char* WordOf(const ConfigWord<Value> (&words)[n], Value value) {
  for (const ConfigWord<Value>& word : words) {
    if (value == word.value) return word.text;
  }
  return "";
}

// "a, b or c".
template <typename Value, size_t n>
std::string ListWords(const ConfigWord<Value> (&words)[n]) {
  std::string list;
  for (size_t i = 0; i < n; ++i) {
    list += (i == 0 ? "" : i + 1 < n ? ", " : " or ") + fmt::format("\"{}\"", words[i].text);
  }
  return list;
}

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CONFIG_BIGS_CONFIG_WORDS_H_
