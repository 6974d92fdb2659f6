"""Statistics for annotation: agreement, consensus, calibration and monitoring. Needs numpy and scipy, but no Django.

Agreement between raters
    rating_patterns.count_patterns            ratings -> pattern counts, the input of every step statistic
    step_agreement.estimate_step_statistics   alpha, AC1, AC2, kappa, percent agreement, with intervals and reasons
    first_error_agreement.estimate_agreement  agreement on the first wrong step
    coefficients                              the coefficients themselves

Consensus
    label_votes.take_majority                 majority label, share and margin per task
    dawid_skene.fit_votes                     Dawid-Skene for labels
    first_error_dawid_skene.fit_reports       Dawid-Skene for the first wrong step, with stopping raters
    first_error_votes                         majority votes on the first wrong step
    calibration                               calibration error, temperature, acceptance threshold

Uncertainty
    intervals                                 Wilson, Clopper-Pearson and cluster jackknife
    bootstrap                                 cluster bootstrap
    estimation.estimate                       a value with its intervals, or the reason why it is undefined

Monitoring
    confusion                                 recall, missed errors and false alarms against a reference
    sequential_tests                          SPRT and CUSUM on gold answers
    rater_signals                             speed, runs and rates that deserve a look
    strata                                    stratified draws of gold traces

Files
    ratings_file, crowd_analysis              CSV of ratings -> agreement report or consensus labels
"""
