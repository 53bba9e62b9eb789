/* One network with a hidden layer of sigmoids for every node, over all rows: what both peers spend their time in.
   Arrays are laid out with the rows last, so that every inner loop is a vector operation. */
#include <math.h>

/* units: (nodes * hidden, rows), sums of weighted inputs, replaced by their sigmoids; outputs: (nodes, rows). */
void forward(double *restrict units, const double *restrict start, const double *restrict weight,
             const double *restrict bias, double *restrict outputs, long nodes, long hidden, long rows) {
    for (long k = 0; k < nodes; k++) {
        double *restrict out = outputs + k * rows;
        for (long i = 0; i < rows; i++) out[i] = bias[k];
        for (long unit = k * hidden; unit < (k + 1) * hidden; unit++) {
            double *restrict u = units + unit * rows;
            const double b = start[unit], w = weight[unit];
            for (long i = 0; i < rows; i++) {
                u[i] = 1 / (1 + exp(-(u[i] + b)));
                out[i] += w * u[i];
            }
        }
    }
}

/* units: the sigmoids, replaced by the gradient of the sums; gradient: (nodes, rows), that of the outputs. */
void backward(double *restrict units, const double *restrict weight, const double *restrict gradient,
              double *restrict to_start, double *restrict to_weight, double *restrict to_bias,
              long nodes, long hidden, long rows) {
    for (long k = 0; k < nodes; k++) {
        const double *restrict g = gradient + k * rows;
        double all = 0;
        for (long i = 0; i < rows; i++) all += g[i];
        to_bias[k] = all;
        for (long unit = k * hidden; unit < (k + 1) * hidden; unit++) {
            double *restrict u = units + unit * rows;
            const double w = weight[unit];
            double of_weight = 0, of_start = 0;
            for (long i = 0; i < rows; i++) {
                const double gu = g[i] * u[i], slope = w * gu * (1 - u[i]);
                of_weight += gu;
                of_start += slope;
                u[i] = slope;
            }
            to_weight[unit] = of_weight;
            to_start[unit] = of_start;
        }
    }
}
