// How a convolution is cut into tasks: geometry in, a ConvPlan out, with what it points to.
#pragma once
#include <vector>

#include "array.hpp"
#include "kernels/conv.hpp"

namespace mortice {

// Three spatial axes; missing ones come first, with one element.
struct Window {
    int64_t samples, groups, inputs, outputs;  // of a convolution; channels a group
    int64_t size[3], count[3];                 // of its input and its output
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    int64_t filter[3];                         // the filters' own sizes, of which the kernel may be a part
    bool last;                                 // channels are last in memory: for windows that are places, or of one channel a group
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    int64_t filter_taps() const { return filter[0] * filter[1] * filter[2]; }
};

template <class T> inline const ConvSet<T> &conv_set();
template <> inline const ConvSet<float> &conv_set<float>() { return conv().f32; }
template <> inline const ConvSet<double> &conv_set<double>() { return conv().f64; }

template <class T> class ConvPlanner {
    struct Axis {
        std::vector<int64_t> residues, index, shift;  // for each tap: which residue, how far
    };
    std::vector<int64_t> z_, residues_[2];
    std::vector<std::vector<int64_t>> offsets_, taps_;
    std::vector<ConvPhase<T>> phases_;
    std::vector<std::vector<int64_t>> shifts_[2], indices_[2];  // of each phase's taps along y and x
    std::vector<std::vector<int64_t>> kept_[2];                 // the taps themselves
    int64_t highest_[2];
    const Window &w_;

  public:
    ConvPlan<T> plan{};
    explicit ConvPlanner(const Window &w) : w_(w) {}

    // Set up the forward pass or the gradient to the input; then cut it by `fit` or `fit_sums`.
    void forward();
    void backward();
    void fit(int threads);
    void fit_sums(int64_t places, bool single, int64_t unit = 1);
    int64_t tasks() const;
    int64_t filters() const;  // elements of packed filters
    void place_filters(T *at);
    int64_t task_room() const;
    double task_work() const;

  private:
    void phase(int64_t fy, int64_t fx, const std::vector<int64_t> *taps, const std::vector<int64_t> *index,
               const std::vector<int64_t> *shift, int64_t count_y, int64_t count_x);
    void bounds();
    void lay_out();
    int64_t columns() const { return plan.band[2] + highest_[1]; }
    int64_t panel_rows() const;
};

extern template class ConvPlanner<float>;
extern template class ConvPlanner<double>;

}  // namespace mortice
