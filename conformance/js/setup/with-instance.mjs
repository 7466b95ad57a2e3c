import { globalSetup } from '../../../clients/javascript/tabletop-setup.mjs'

export default globalSetup({ args: ['--instance', process.env.INSTANCE] })
