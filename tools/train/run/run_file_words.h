// The words of a run file and what they mean.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_WORDS_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_WORDS_H_

#include "engine/config/bigs_config_words.h"
#include "tools/train/run/run_file.h"

namespace hippodrome {

inline constexpr ConfigWord<Objective> kObjectiveWords[] = {
    {"causal_lm", Objective::kCausalLm},
    {"masked_lm", Objective::kMaskedLm},
    {"classification", Objective::kClassification},
    {"regression", Objective::kRegression},
    {"token_classification", Objective::kTokenClassification},
    {"question_answering", Objective::kQuestionAnswering},
    {"induction_head", Objective::kInductionHead},
    {"associative_recall", Objective::kAssociativeRecall},
};
inline constexpr ConfigWord<ScheduleKind> kScheduleWords[] = {
    {"constant", ScheduleKind::kConstant},
    {"linear", ScheduleKind::kLinear},
    {"cosine", ScheduleKind::kCosine},
};
inline constexpr ConfigWord<DType> kWeightsWords[] = {{"f32", DType::kF32}, {"bf16", DType::kBF16}};
inline constexpr ConfigWord<DeviceChoice> kDeviceWords[] = {
    {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}};
// The published names are their own meaning.
inline constexpr ConfigWord<std::string_view> kMeasureWords[] = {{"diag-lin", "diag-lin"},
                                                                 {"diag-inv", "diag-inv"},
                                                                 {"diag", "diag"},
                                                                 {"diag-legs", "diag-legs"}};
inline constexpr ConfigWord<std::string_view> kScalingWords[] = {
    {"hippo", "hippo"}, {"lin", "lin"}, {"inv", "inv"}};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_RUN_FILE_WORDS_H_
