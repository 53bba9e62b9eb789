/* One network with a hidden layer of sigmoids for every node, over all rows: what both peers spend their time in.
   Arrays are laid out with the rows last, so that every inner loop is a vector operation. */
#include <math.h>

#define EQUATIONS(real, EXP)                                                                                    \
                                                                                                                \
/* units: (nodes * hidden, rows), sums of weighted inputs, replaced by their sigmoids; outputs: (nodes, rows). */ \
void forward_##real(real *restrict units, const real *restrict start, const real *restrict weight,             \
                    const real *restrict bias, real *restrict outputs, long nodes, long hidden, long rows) {   \
    for (long k = 0; k < nodes; k++) {                                                                          \
        real *restrict out = outputs + k * rows;                                                                \
        for (long i = 0; i < rows; i++) out[i] = bias[k];                                                       \
        for (long unit = k * hidden; unit < (k + 1) * hidden; unit++) {                                         \
            real *restrict u = units + unit * rows;                                                             \
            const real b = start[unit], w = weight[unit];                                                       \
            for (long i = 0; i < rows; i++) {                                                                   \
                u[i] = 1 / (1 + EXP(-(u[i] + b)));                                                              \
                out[i] += w * u[i];                                                                             \
            }                                                                                                   \
        }                                                                                                       \
    }                                                                                                           \
}                                                                                                               \
                                                                                                                \
/* units: the sigmoids, replaced by the gradient of the sums; gradient: (nodes, rows), that of the outputs. */   \
void backward_##real(real *restrict units, const real *restrict weight, const real *restrict gradient,         \
                     real *restrict to_start, real *restrict to_weight, real *restrict to_bias,                \
                     long nodes, long hidden, long rows) {                                                      \
    for (long k = 0; k < nodes; k++) {                                                                          \
        const real *restrict g = gradient + k * rows;                                                           \
        real all = 0;                                                                                           \
        for (long i = 0; i < rows; i++) all += g[i];                                                            \
        to_bias[k] = all;                                                                                       \
        for (long unit = k * hidden; unit < (k + 1) * hidden; unit++) {                                         \
            real *restrict u = units + unit * rows;                                                             \
            const real w = weight[unit];                                                                        \
            real of_weight = 0, of_start = 0;                                                                   \
            for (long i = 0; i < rows; i++) {                                                                   \
                const real gu = g[i] * u[i], slope = w * gu * (1 - u[i]);                                       \
                of_weight += gu;                                                                                \
                of_start += slope;                                                                              \
                u[i] = slope;                                                                                   \
            }                                                                                                   \
            to_weight[unit] = of_weight;                                                                        \
            to_start[unit] = of_start;                                                                          \
        }                                                                                                       \
    }                                                                                                           \
}

EQUATIONS(double, exp)
EQUATIONS(float, expf)
